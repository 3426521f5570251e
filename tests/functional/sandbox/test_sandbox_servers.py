"""The parts that speak to the database and the broker, on the real ones."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymysql
import pytest
import sqlalchemy

from trimaran.sandbox import amqp, dump

TABLES = """
CREATE TABLE parent (
    id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20) NOT NULL, odd VARCHAR(50),
    `key` BLOB, at DATETIME, much DECIMAL(10, 3), yes TINYINT(1),
    UNIQUE KEY name (name)
) DEFAULT CHARSET = utf8mb4;
CREATE TABLE child (
    id INT PRIMARY KEY, parent_id INT, FOREIGN KEY (parent_id) REFERENCES parent (id)
)
"""
ROWS = [
    (1, "a", 'it\'s; a \\ "test" \u2013 100%', b"\x00\xff'\n", "2030-01-02 03:04:05", "1.500", 1),
    (2, "b", None, None, None, None, 0),
    (7, "c", "", b"", None, "-2.000", None),
]


@pytest.fixture
def connect(mariadb_url: str) -> Callable[[str | None], Any]:
    """A function that connects to the server, or to one of its databases."""
    url = sqlalchemy.make_url(mariadb_url)

    def make(database: str | None) -> Any:
        return pymysql.connect(
            host=url.host,
            port=url.port or 3306,
            user=url.username,
            password=url.password or "",
            database=database,
            autocommit=True,
            client_flag=pymysql.constants.CLIENT.MULTI_STATEMENTS,
        )

    return make


def test_a_dump_makes_the_same_database_again(
    mariadb_url: str, connect: Callable[[str | None], Any], tmp_path: Path
) -> None:
    name = sqlalchemy.make_url(mariadb_url).database
    copy = f"{name}_copy"
    with connect(name) as one, one.cursor() as cursor:
        for statement in TABLES.split(";"):
            cursor.execute(statement)
        cursor.executemany("INSERT INTO parent VALUES (%s, %s, %s, %s, %s, %s, %s)", ROWS)
        cursor.execute("INSERT INTO child VALUES (1, 7)")
        taken = dump.take(cursor)
        cursor.execute("SELECT * FROM parent ORDER BY id")
        before = cursor.fetchall()
        cursor.execute(f"CREATE DATABASE {copy} CHARACTER SET utf8mb4")
    try:
        path = tmp_path / "cache" / "x.json"
        dump.save(path, {"x": taken})
        loaded = dump.load(path)
        assert loaded == {"x": taken}
        with connect(copy) as two, two.cursor() as cursor:
            dump.put(cursor, loaded["x"])
            cursor.execute("SELECT * FROM parent ORDER BY id")
            assert cursor.fetchall() == before
            # constraints and counters came along
            cursor.execute("INSERT INTO parent (name) VALUES ('d')")
            cursor.execute("SELECT max(id) FROM parent")
            assert cursor.fetchone() == (8,)
            cursor.execute("SET SESSION foreign_key_checks = 1")
            with pytest.raises(pymysql.err.IntegrityError):
                cursor.execute("INSERT INTO child VALUES (2, 99)")
    finally:
        with connect(None) as server, server.cursor() as cursor:
            cursor.execute(f"DROP DATABASE {copy}")


@pytest.mark.rabbitmq
def test_a_broker_opens_its_virtual_hosts_only(amqp_url: str) -> None:
    port = sqlalchemy.make_url(amqp_url.replace("rabbit://", "amqp://")).port or 5672

    end = time.monotonic() + 60
    while not amqp.opens(port, "/"):  # each look has five seconds
        assert time.monotonic() < end
    assert not amqp.opens(port, "no-such-host")
    assert amqp.without_consumer(port, "/", ["no-such-queue", "nor-this"]) == {
        "no-such-queue",
        "nor-this",
    }


def test_what_is_no_broker_does_not_open(free_port: Callable[[], int]) -> None:
    assert not amqp.opens(free_port(), "/")

    with socket.create_server(("127.0.0.1", 0)) as server:

        def talk_http() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(100)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=talk_http, daemon=True)
        thread.start()
        assert not amqp.opens(server.getsockname()[1], "/")
        thread.join(60)
