# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL and Redis: a query is unanswered until its answer comes, however long that takes."""
import pathlib
import shutil
import subprocess
import threading

import psycopg2
import pytest
import redis

from machine import Workload, wait_for

POSTGRES = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))[-1]


@pytest.fixture(scope="module")
def postgres(machine, watch_tool, certificate):
    workload = Workload(machine, "postgres", watch_tool, [5433])
    data = workload.directory / "data"
    data.mkdir()
    shutil.chown(data, "postgres")
    as_postgres = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--no-new-privs"]
    subprocess.run([*as_postgres, POSTGRES / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync"], check=True,
                   capture_output=True, cwd="/")
    for source, name in zip(certificate, ("server.crt", "server.key")):
        shutil.copy(source, data / name)
        shutil.chown(data / name, "postgres")
        (data / name).chmod(0o600)
    (data / "postgresql.conf").write_text(f"port = 5433\nlisten_addresses = 'localhost'\nssl = on\n"
                                          f"unix_socket_directories = '{data}'\nfsync = off\n")
    workload.start([*as_postgres, POSTGRES / "postgres", "-D", data])
    yield workload
    workload.close()


@pytest.fixture(params=["disable", "require"], ids=["plain", "TLS"])
def database(request, postgres):
    def connect():
        connection = psycopg2.connect(host="localhost", port=5433, user="postgres", sslmode=request.param)
        connection.autocommit = True
        return connection

    def try_connect():
        try:
            return connect()
        except psycopg2.OperationalError:
            return None

    wait_for(try_connect, "PostgreSQL to accept").close()
    return connect


def query(connection, statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)


def test_an_idle_session_of_postgres_is_not_busy(postgres, database):
    connection = database()
    for _ in range(3):
        query(connection, "select 1")
    postgres.await_answered()
    postgres.assert_no_request_for(0.5)
    assert postgres.read()["connections"] == 1
    connection.close()


@pytest.mark.parametrize("queries_before", [0, 2])
def test_a_query_of_postgres_is_open_while_it_runs(postgres, database, queries_before):
    connection, lock = database(), database()
    for _ in range(queries_before):
        query(connection, "select 1")
    query(lock, "select pg_advisory_lock(1)")
    waits = threading.Thread(target=query, args=[connection, "select pg_advisory_lock(1)"])
    waits.start()
    wait_for(lambda: postgres.read()["open"] == 1, "the query to arrive")
    postgres.assert_open_for(2)
    query(lock, "select pg_advisory_unlock(1)")
    waits.join()
    postgres.await_answered()
    connection.close()
    lock.close()


def test_pg_sleep_is_open_until_it_ends(postgres, database):
    connection = database()
    sleeps = threading.Thread(target=query, args=[connection, "select pg_sleep(3)"])
    sleeps.start()
    wait_for(lambda: postgres.read()["open"] == 1, "the query to arrive")
    postgres.assert_open_for(2)
    sleeps.join()
    postgres.await_answered()
    connection.close()


@pytest.fixture(scope="module")
def redis_server(machine, watch_tool):
    workload = Workload(machine, "redis", watch_tool, [6380])
    workload.start(["redis-server", "--port", "6380", "--save", "", "--dir", str(workload.directory)])
    yield workload
    workload.close()


def test_an_idle_session_of_redis_is_not_busy(redis_server):
    client = redis.Redis(port=6380)
    for _ in range(3):
        client.get("key")
    redis_server.await_answered()
    redis_server.assert_no_request_for(0.5)
    assert redis_server.read()["connections"] == 1
    client.close()


def test_blpop_is_open_until_something_is_pushed(redis_server):
    client, other = redis.Redis(port=6380), redis.Redis(port=6380)
    waits = threading.Thread(target=client.blpop, args=["list"])
    waits.start()
    wait_for(lambda: redis_server.read()["open"] == 1, "the command to arrive")
    redis_server.assert_open_for(2)
    other.lpush("list", "value")
    waits.join()
    redis_server.await_answered()
    client.close()
    other.close()
