"""Kafka's way of writing options."""

from __future__ import annotations

import pytest

from penstock.cli.kafka.parsing import Option, Parsed, Takes, UsageError, flag, key_values, parse, split_list

OPTIONS = (
    flag("list", ""),
    flag("help", "", short="h"),
    Option("topic", ""),
    Option("partitions", "", default="1"),
    Option("config", "", repeatable=True),
    Option("state", "", takes=Takes.MAYBE, repeatable=True),
    Option("props", "", takes=Takes.SEVERAL, repeatable=True),
    Option("shift-by", ""),
    Option("jar", "", refused="there is no Java here"),
)


def read(line: str) -> Parsed:
    return parse(OPTIONS, line.split())


@pytest.mark.parametrize("line", ["--topic t", "--topic=t", "-topic t", "-topic=t"])
def test_a_value_is_written_in_four_ways(line: str) -> None:
    assert read(line).get("topic") == "t"


def test_flags_and_defaults() -> None:
    parsed = read("--list")
    assert parsed.has("list")
    assert not parsed.has("partitions")
    assert parsed.number("partitions") == 1
    assert parsed.get("topic") is None
    assert read("-h").has("help")


def test_values_may_contain_equals_and_begin_with_a_dash() -> None:
    assert read("--config=a=b").values("config") == ["a=b"]
    assert read("--shift-by -5").number("shift-by") == -5
    assert read("--topic --list").get("topic") == "--list"


def test_an_optional_value_is_the_next_word_unless_that_is_an_option() -> None:
    assert read("--state").values("state") == []
    assert read("--state").has("state")
    parsed = read("--state --list")
    assert parsed.has("list")
    assert parsed.get("state") is None
    assert read("--state stable").get("state") == "stable"


def test_several_values_end_at_the_next_option() -> None:
    parsed = read("--props a=1 b=2 --list --props c=3")
    assert parsed.values("props") == ["a=1", "b=2", "c=3"]
    assert parsed.has("list")
    with pytest.raises(UsageError, match="props requires an argument"):
        read("--props --list")


def test_an_option_that_is_not_repeatable_has_one_value() -> None:
    parsed = read("--topic a --topic b --config x=1 --config y=2")
    assert parsed.values("config") == ["x=1", "y=2"]
    with pytest.raises(UsageError, match="Found multiple arguments for option topic, but you asked for only one"):
        parsed.get("topic")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--lis", "lis is not a recognized option; did you mean --list?"),
        ("--nonsense", "nonsense is not a recognized option"),
        ("--topic", "Option topic requires an argument"),
        ("--list=1", "Option list takes no argument, but '1' is given"),
        ("--jar x", "--jar is not supported here: there is no Java here"),
    ],
)
def test_what_makes_no_sense_is_told(line: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(line)
    assert str(caught.value) == message


def test_numbers() -> None:
    with pytest.raises(UsageError, match="Cannot parse argument 'x' of option partitions"):
        read("--partitions x").number("partitions")


def test_words_and_their_end() -> None:
    parsed = read("list --topic t -- --list more")
    assert parsed.words == ("list", "--list", "more")
    assert not parsed.has("list")


def test_order_is_kept() -> None:
    assert read("--topic t --list --config a=1").order == (("topic", "t"), ("list", None), ("config", "a=1"))


def test_rules_between_options() -> None:
    parsed = read("--list --topic t")
    with pytest.raises(UsageError, match=r'Missing required argument "\[config\]"'):
        parsed.require("topic", "config")
    with pytest.raises(UsageError, match=r'Option "\[list\]" can\'t be used with option "\[topic\]"'):
        parsed.exclude("list", "topic")
    parsed.exclude("config", "list")
    assert parsed.one_of(("list", "config"), "no") == "list"
    with pytest.raises(UsageError, match="exactly one"):
        parsed.one_of(("list", "topic"), "exactly one")


def test_key_values_and_lists() -> None:
    assert key_values(["a=b=c", " d =e"], "x") == {"a": "b=c", "d": "e"}
    assert key_values(["a="], "x") == {"a": ""}
    for bad in ("a", "=b"):
        with pytest.raises(UsageError, match="takes key=value"):
            key_values([bad], "x")
    assert split_list("k1=v1,k2=[a,b], k3=v3,") == ["k1=v1", "k2=[a,b]", "k3=v3"]
