"""Telemetry of OpenTelemetry's protocol (OTLP) as rows of tables."""
