"""``trimaran jobs`` on a database of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from trimaran import work
from trimaran.cli.jobs import jobs
from trimaran.db import Database, migrate
from trimaran.db.queries import work_jobs


@pytest.fixture
def url(tmp_path: Path) -> str:
    where = f"sqlite:///{tmp_path}/jobs.sqlite"
    migrate.upgrade(where, "ec2")
    return where


def ask(url: str, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(jobs, [words[0], "--url", url, *words[1:]])
    return done.exit_code, done.output


def test_an_empty_queue_is_said(url: str) -> None:
    assert ask(url, "list") == (0, "no jobs\n")


def test_a_job_is_listed_cancelled_and_run_again_without_its_payload(url: str) -> None:
    database = Database(url)
    id_ = database.write(
        lambda session: work.enqueue(session, "ec2.test", {"token": "hush"}, key="one")
    )
    code, listed = ask(url, "list", "--kind", "ec2.test")
    assert (code, id_ in listed, "queued" in listed) == (0, True, True)
    assert ask(url, "cancel", id_) == (0, f"{id_} is cancelled\n")
    assert ask(url, "cancel", id_)[0] == 1
    code, shown = ask(url, "show", id_)
    assert (code, "cancelled" in shown, "hush" in shown) == (0, True, False)
    assert ask(url, "retry", id_) == (0, f"{id_} is queued\n")
    job = database.read(lambda session: work_jobs.show(session, id_))
    assert job is not None
    assert job.state == "queued"


def test_what_a_cancelled_job_leaves_half_done_is_left_to_another_one(url: str) -> None:
    database = Database(url)
    payload = {"project": "p", "item": "ami-1"}
    id_ = database.write(lambda session: work.enqueue(session, "ec2.create_image", payload))
    assert ask(url, "cancel", id_) == (0, f"{id_} is cancelled\n")
    [job] = database.read(lambda session: work_jobs.listing(session, kind="ec2.cancelled"))
    assert (job.state, job.key, job.payload["payload"]) == ("queued", id_, payload)


@pytest.mark.parametrize("word", ["show", "retry", "cancel"])
def test_an_unknown_job_is_a_sentence_and_exit_1(url: str, word: str) -> None:
    code, said = ask(url, word, "no-such-job")
    assert code == 1
    assert said.startswith("trimaran: ")


def test_a_second_job_of_a_key_is_refused_in_a_sentence(url: str) -> None:
    database = Database(url)

    def queue() -> str:
        return database.write(lambda session: work.enqueue(session, "ec2.test", {}, key="one"))

    first = queue()
    assert ask(url, "cancel", first)[0] == 0
    queue()
    code, said = ask(url, "retry", first)
    assert (code, said) == (1, "trimaran: An unfinished job with the same key exists.\n")


def test_a_database_that_was_never_migrated_is_a_sentence(tmp_path: Path) -> None:
    code, said = ask(f"sqlite:///{tmp_path}/empty.sqlite", "list")
    assert code == 1
    assert said == "trimaran: The service is temporarily unavailable.\n"
