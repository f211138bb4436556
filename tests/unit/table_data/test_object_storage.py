"""How DuckDB signs in to an object storage, by PyIceberg's settings."""

from __future__ import annotations

import pytest

from icemigrate.table_data.object_storage import find_object_storage, object_folders

KEYS = {"s3.access-key-id": "k'1", "s3.secret-access-key": "s"}


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({}, "REGION 'us-east-1', URL_STYLE 'vhost'"),
        ({"s3.region": "eu-west-1"}, "REGION 'eu-west-1', URL_STYLE 'vhost'"),
        ({"s3.force-virtual-addressing": "false"}, "REGION 'us-east-1', URL_STYLE 'path'"),
        ({"s3.session-token": "t"}, "SESSION_TOKEN 't', REGION 'us-east-1', URL_STYLE 'vhost'"),
        (
            {"s3.endpoint": "http://127.0.0.1:9000/"},
            "REGION 'us-east-1', ENDPOINT '127.0.0.1:9000', USE_SSL false, URL_STYLE 'path'",
        ),
        (
            {"s3.endpoint": "https://s3.example.com", "s3.force-virtual-addressing": "true"},
            "REGION 'us-east-1', ENDPOINT 's3.example.com', USE_SSL true, URL_STYLE 'vhost'",
        ),
    ],
)
def test_keys_of_the_project_file_sign_in(settings: dict[str, str], wanted: str) -> None:
    found = find_object_storage({**KEYS, "uri": "http://127.0.0.1", **settings})
    assert found is not None
    begin = "CREATE TEMPORARY SECRET icemigrate (TYPE s3, KEY_ID 'k''1', SECRET 's', "
    assert found.statement == f"{begin}{wanted})"


@pytest.mark.parametrize(
    "settings",
    [
        {"s3.access-key-id": ""},
        {"s3.role-arn": "arn:aws:iam::1:role/r"},
        {"s3.proxy-uri": "http://127.0.0.1:1"},
        {"client.region": "eu-west-1"},
        {"s3.endpoint": "127.0.0.1:9000"},
        {"s3.endpoint": "http://127.0.0.1:9000/below"},
    ],
)
def test_other_ways_to_sign_in_are_left_to_pyiceberg(settings: dict[str, str]) -> None:
    assert find_object_storage({**KEYS, **settings}) is None


def test_a_folder_has_all_its_names() -> None:
    assert object_folders("s3a://lake/a/b") == ("s3://lake/a/b/", "s3a://lake/a/b/", "s3n://lake/a/b/")
    assert object_folders("gs://lake/a") == object_folders("/lake/a") == object_folders("s3:lake") == ()
