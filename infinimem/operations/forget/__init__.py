"""What `forget` takes out, and where its words could stand besides."""
