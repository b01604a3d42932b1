"""What every server over HTTP needs: an address, who may call by which name, bounded connections."""
