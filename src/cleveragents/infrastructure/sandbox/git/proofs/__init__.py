"""What git knows of contents: which file holds which blob for certain, and the bytes of blobs."""
