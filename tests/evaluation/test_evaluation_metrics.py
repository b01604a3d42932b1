"""Measures against cases worked out by hand, and against other people's code where that is installed."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Sequence
from statistics import fmean

import pytest
from cases import each

from infinimem.errors import ModelError
from infinimem.evaluation import metrics
from infinimem.evaluation.report import paired_difference
from infinimem.llm.offline import tell

WORDS = "the cat sat on a mat and dogs ran to the painted fences in 2023 while running cats".split()


def drawn_texts(seed: int = 1, count: int = 60) -> list[tuple[str, str]]:
    draw = random.Random(seed)
    return [
        (
            " ".join(draw.choices(WORDS, k=draw.randint(1, 9))),
            " ".join(draw.choices(WORDS, k=draw.randint(1, 9))),
        )
        for _ in range(count)
    ]


def _difference(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, float]:
    return paired_difference([a - b for a, b in zip(ours, theirs, strict=True)])


def _is_sure(found: dict[str, float]) -> bool:
    """Whether the interval leaves out 0."""
    return found["low"] > 0 or found["high"] < 0


class TestRetrieval:
    def test_all_measures_of_a_ranking(self) -> None:
        found = metrics.measures(["a", "a", "b", "c"], {"b", "z"}, (1, 2), label="turn ")
        assert found == {
            "turn R@1": 0,
            "turn N@1": 0,
            "turn hit@1": 0,
            "turn all@1": 0,
            "turn R@2": 0.5,
            "turn N@2": pytest.approx((1 / math.log2(3)) / (1 + 1 / math.log2(3))),
            "turn hit@2": 1,
            "turn all@2": 0,
        }
        assert metrics.measures(["b", "z"], {"b", "z"}, (2,))["all@2"] == 1

    def test_what_is_read_within_a_budget(self) -> None:
        pieces = [(["a", "b"], 10), ([], 5), (["z"], 10)]
        gold = {"b", "z"}
        assert [metrics.within(pieces, gold, budget) for budget in (9, 10, 24, 25)] == [0, 0.5, 0.5, 1]
        big_first = [(["a"], 100), (["z"], 1)]
        assert metrics.within(big_first, {"z"}, 50) == 0, "reading ends at a piece that does not fit"

    def test_tokens_until_all_was_seen(self) -> None:
        pieces = [(["a", "b"], 10), ([], 5), (["z"], 10), (["y"], 10)]
        assert metrics.tokens_until(pieces, {"b"}) == 10
        assert metrics.tokens_until(pieces, {"b", "z"}) == 25
        assert metrics.tokens_until(pieces, {"b", "q"}) is None

    def test_against_trec_eval(self) -> None:
        trec = pytest.importorskip("pytrec_eval", reason="pytrec-eval-terrier is not installed")
        draw = random.Random(3)
        for _ in range(50):
            ranked = [f"d{n}" for n in draw.sample(range(40), draw.randint(1, 30))]
            gold = {f"d{n}" for n in draw.sample(range(40), draw.randint(1, 12))}
            run = {item: float(100 - rank) for rank, item in enumerate(ranked)}
            wanted = trec.RelevanceEvaluator(
                {"q": dict.fromkeys(gold, 1)}, {"ndcg_cut.5,10,20", "recall.5,10,20", "success.5,10"}
            ).evaluate({"q": run})["q"]
            ours = metrics.measures(ranked, gold, (5, 10, 20))
            for k in (5, 10, 20):
                assert ours[f"N@{k}"] == pytest.approx(wanted[f"ndcg_cut_{k}"])
                assert ours[f"R@{k}"] == pytest.approx(wanted[f"recall_{k}"])
            assert ours["hit@5"] == wanted["success_5"]


class TestAnswers:
    def test_stems(self) -> None:
        assert metrics.stems("The cats, and a dog's fences!") == ("cat", "dog", "fenc")
        assert metrics.stems("and the") == ()

    def test_without_nltk_a_run_ends_in_one_line(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Not in a line of errors.jsonl for each question."""
        monkeypatch.setitem(sys.modules, "nltk.stem.porter", None)
        with pytest.raises(ModelError, match=r"pip install 'infinimem\[bench\]'"):
            metrics.stems("heronless")

    @each(
        ("given", "expected", "score"),
        [
            ("7 May 2023", "7 May 2023", 1),
            ("On 7 May", "7 May 2023", 2 / 3),  # 2 of 3 and 2 of 3
            ("the cat cat", "a cat", 2 / 3),  # each word counts as often as both have it: 1 of 2, 1 of 1
            ("running dogs", "run dog", 1),
            ("", "cat", 0),
            ("the", "a", 0),
        ],
    )
    def test_token_f1(self, given: str, expected: str, score: float) -> None:
        assert metrics.token_f1(given, expected) == pytest.approx(score)

    def test_parts_are_matched_each_with_its_best(self) -> None:
        # pottery: "pottery" 1; camping trips: "camping" 1 of 1 and 1 of 2, so 2/3; mean 5/6
        assert metrics.locomo_f1("pottery, camping", "camping trips, pottery", "multi-hop") == pytest.approx(
            5 / 6
        )
        assert metrics.locomo_f1("pottery, camping", "swimming", "multi-hop") == 0

    def test_rules_of_the_categories(self) -> None:
        assert metrics.locomo_f1("pottery, camping", "camping, pottery", "multi-hop") == 1
        assert metrics.locomo_f1("camping, pottery", "pottery", "single-hop") == pytest.approx(2 / 3)
        assert metrics.locomo_f1("Likely no", "Likely no; since it went badly", "open-domain") == 1
        assert metrics.locomo_f1("Likely no", "Likely no; since it went badly", "temporal") < 1

    @each(
        "text",
        [
            "No information available",
            "Not mentioned.",
            "The memory holds nothing about it.",
            "I don't know",
            "She doesn\u2019t say.",
            "That is not stated.",
        ],
    )
    def test_ways_to_say_nothing(self, text: str) -> None:
        assert metrics.says_nothing(text) and not metrics.says_nothing("self-care")
        asked = {"answer": text, "kind": "unanswerable", "expected": []}
        assert tell.strict(asked)["correct"], "the offline judge takes the same ways"

    def test_nothing_in_common_is_zero(self) -> None:
        for given, expected in (("", "cat"), ("dog", "cat")):
            assert metrics.bleu1(given, expected) == metrics.rouge_l(given, expected) == 0

    def test_bleu1_against_nltk(self) -> None:
        bleu = pytest.importorskip("nltk.translate.bleu_score", reason="nltk is not installed")
        for given, expected in drawn_texts():
            if not set(given.split()) & set(expected.split()):
                continue  # nltk warns where nothing is shared
            wanted = bleu.sentence_bleu([expected.split()], given.split(), weights=(1,))
            assert metrics.bleu1(given, expected) == pytest.approx(wanted)

    def test_rouge_l_against_rouge_score(self) -> None:
        scorer = pytest.importorskip("rouge_score.rouge_scorer", reason="rouge-score is not installed")
        reference = scorer.RougeScorer(["rougeL"])
        for given, expected in drawn_texts(2):
            wanted = reference.score(expected, given)["rougeL"].fmeasure
            assert metrics.rouge_l(given, expected) == pytest.approx(wanted)

    def test_an_answer_counts_if_the_expected_one_is_a_part_of_it(self) -> None:
        assert metrics.holds("She lives in the  Hague!", ["hague"])
        assert metrics.holds("U.S.A.", ["usa"])
        assert not metrics.holds("Rome", ["Lisbon", "Porto"])
        assert not metrics.holds("Rome", ["the"]), "what is nothing without articles is in no answer"

    def test_the_best_of_several_expected(self) -> None:
        assert metrics.best(metrics.token_f1, "two", ["2", "two"]) == 1
        assert metrics.best(metrics.token_f1, "two", []) == 0


class TestStatistics:
    def test_a_difference_that_is_always_there_is_sure(self) -> None:
        found = _difference([0.6, 0.4, 0.9], [0.5, 0.3, 0.8])
        assert list(found.values()) == pytest.approx([0.1, 0.1, 0.1], abs=1e-6)

    def test_the_interval_is_that_of_the_normal_law_for_many_questions(self) -> None:
        draw = random.Random(5)
        ours = [draw.gauss(0.5, 0.2) for _ in range(2000)]
        theirs = [draw.gauss(0.45, 0.2) for _ in range(2000)]
        found = _difference(ours, theirs)
        differences = [a - b for a, b in zip(ours, theirs, strict=True)]
        middle = fmean(differences)
        spread = math.sqrt(fmean([(value - middle) ** 2 for value in differences]) / 2000)
        assert found["mean"] == pytest.approx(middle)
        assert found["low"] == pytest.approx(middle - 1.96 * spread, abs=0.1 * spread)
        assert found["high"] == pytest.approx(middle + 1.96 * spread, abs=0.1 * spread)

    def test_it_is_paired_and_seeded(self) -> None:
        draw = random.Random(6)
        hard = [draw.random() for _ in range(300)]
        easier = [value + draw.choice((0.0, 0.02)) for value in hard]
        found = _difference(easier, hard)
        assert _is_sure(found), "scores vary much from question to question, the difference does not"
        assert found == _difference(easier, hard)
        assert not _is_sure(_difference(hard, random.Random(1).sample(hard, 300)))
