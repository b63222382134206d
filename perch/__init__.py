"""Perch: proves that an RDMA fabric is ready for production."""
