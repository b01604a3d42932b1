"""Model servers over HTTP: bounded requests, whatever the server does. Knows nothing of what is asked."""
