"""A lake on this machine: Postgres, an S3 server and an Iceberg REST catalog on 127.0.0.1.

`make init-infra` starts the servers and applies `migrations/`; `make destroy-infra` stops them and deletes
their data.
"""
