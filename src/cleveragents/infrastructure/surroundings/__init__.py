"""What is around a call on this machine: the project one stands in, programs, folders."""
