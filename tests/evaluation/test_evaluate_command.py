"""`tmt evaluate` from end to end: files and models, what it prints and stores, and which mistakes it reports."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from transformer_mt.cli import main
from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.config.load import load_config
from transformer_mt.config.schema import Config
from transformer_mt.data.prepared import FORMAT, Manifest, settings_of
from transformer_mt.decoding.model_directory import save_model_directory
from transformer_mt.decoding.translator import Translator
from transformer_mt.evaluation.metrics import BY_DEFAULT, bleu_tokens
from transformer_mt.evaluation.scores import score
from transformer_mt.kernels.build import build_model
from transformer_mt.text.codec import Codec, Segmenter
from transformer_mt.text.vocabulary import MARKS, Vocabulary
from transformer_mt.workflows.evaluate import evaluate_splits

pytestmark = pytest.mark.slow

SOURCES = ["a b c d", "b c", "d d a", "c", "a c b"] * 3
REFERENCES = ["A B C D", "B C", "D D A", "C", "A C B"] * 3


@pytest.fixture
def tmt(monkeypatch, capsys):
    """Run `tmt evaluate` with these arguments: exit code, stdout, stderr."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["tmt", "evaluate", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main.run()
        out, err = capsys.readouterr()
        return left.value.code, out, err

    return run


@pytest.fixture
def files(systems, write):
    """Arguments that score the good system's file."""
    return "--hypothesis", write("good", systems.good), "--reference", write("references", systems.references)


def note_of_empty(files):
    return f"tmt: {files[1]}: 1 of 80 translations is empty, the first on line 8\n"


def _codec(language, letters):
    segmenter = Segmenter(_config("x").source_tokenizer, language)
    return Codec(segmenter, Vocabulary([*MARKS, *letters]))


def _config(prepared):
    return Config.model_validate(
        {
            "name": "tiny",
            "data": {"source": "de", "target": "en", "corpus": {"kind": "phrasebook"}, "prepared": str(prepared)},
            "tokenizer": {"kind": "whitespace"},
            "model": {"d_model": 8, "n_heads": 2, "d_ff": 8, "encoder_layers": 1, "decoder_layers": 1},
            "training": {"max_epochs": 1},
            "decoding": {"beam": 2, "max_length_ratio": 1.0, "max_length_offset": 2},
        }
    )


@pytest.fixture
def model(tmp_path):
    """An untrained model of nine words, with a validation set and two test sets."""
    config = _config(tmp_path / "prepared")
    codecs = _codec("de", "abcd"), _codec("en", "ABCD")
    torch.manual_seed(1)
    folder = tmp_path / "runs" / "tiny" / "model"
    save_model_directory(folder, config, build_model(config, 8, 8).state_dict(), codecs)
    splits = ("train", "validation", "test_one", "test_two")
    for split in splits:
        place = tmp_path / "prepared" / "tiny" / split
        place.mkdir(parents=True)
        (place / "source.txt").write_text("".join(f"{line}\n" for line in SOURCES))
        (place / "target.txt").write_text("".join(f"{line}\n" for line in REFERENCES))
    manifest = Manifest(
        format=FORMAT,
        settings=settings_of(config),
        fingerprint="",
        files=[],
        splits=dict.fromkeys(splits, len(SOURCES)),
        parts=[],
        report={},
    )
    (tmp_path / "prepared" / "tiny" / "manifest.json").write_text(manifest.model_dump_json())
    return folder


class TestFiles:
    def test_json_is_one_object_with_the_contracts_keys(self, tmt, files, systems):
        code, out, err = tmt(*files, "--json")
        values = json.loads(out)
        assert (code, err) == (0, note_of_empty(files))
        expected = score(systems.good, systems.references)
        assert {name: values[name] for name in expected} == {name: one.value for name, one in expected.items()}
        assert values["signature"] == expected["bleu"].signature
        assert values["sentences"] == len(systems.references)
        assert values["bleu_table"]["cumulative"][3] > 0

    def test_scores_by_length_are_drawn(self, tmt, files, tmp_path):
        picture = tmp_path / "scores.svg"
        code, out, err = tmt(*files, "--plot", picture, "--theme", "dark")
        assert (code, out, err) == (0, tmt(*files)[1], f"{note_of_empty(files)}tmt: wrote {picture}\n")
        assert picture.read_text(encoding="utf-8").count("<svg") == 1

    def test_a_picture_that_fails_does_not_cost_the_scores(self, tmt, files, tmp_path, monkeypatch):
        expected = tmt(*files)[1]

        def failing(_, file, **__):
            raise OSError(errno.ENOSPC, "No space left on device", str(file))

        monkeypatch.setattr("matplotlib.figure.Figure.savefig", failing)
        code, out, err = tmt(*files, "--plot", tmp_path / "scores.png")
        assert (code, out) == (2, expected)
        assert f"tmt: {tmp_path / 'scores.png'}: the disk is full" in err

    def test_chrf_plus_plus_is_that_of_sacrebleu_and_only_computed_if_it_is_named(self, tmt, files, sacrebleu):
        expected = sacrebleu(files[3], "-i", files[1], "-m", "chrf", "--chrf-word-order", 2)
        code, out, _ = tmt(*files, "--metric", "chrf++", "--chrf", "--metric", "chrf", "--json")
        values = json.loads(out)
        assert (code, values["chrf++"]) == (0, pytest.approx(expected["score"], abs=1e-7))
        assert values["signatures"]["chrf++"] == expected["signature"]
        assert [*values["signatures"]] == [*values["intervals"]] == ["chrf", "chrf++"]
        assert "chrf++" not in json.loads(tmt(*files, "--json")[1])
        code, _, err = tmt(*files, "--metric", "chrf3")
        assert (code, err) == (2, "tmt: unknown metric 'chrf3'\n  Use one of bleu, chrf, ter, chrf++.\n")

    def test_metrics_that_are_computed_by_default_have_an_option(self, tmt):
        _, out, _ = tmt("--help")
        assert re.findall(r"^  --(\w+)", out, re.MULTILINE)[:4] == [*BY_DEFAULT, "metric"]

    def test_people_get_text_that_begins_with_the_scores(self, tmt, files, systems):
        code, out, err = tmt(*files)
        assert (code, err) == (0, note_of_empty(files))
        lines = [one.line for one in score(systems.good, systems.references).values()]
        assert out.split("\n")[:3] == lines

    def test_every_figure_is_sacrebleus(self, tmt, files, systems, write, sacrebleu):
        """Scores of the whole test set, of each group by length, and of single sentences."""
        ours = json.loads(tmt(*files, "--language", "de", "--json")[1])
        whole = sacrebleu(files[3], "-i", files[1], "-m", "bleu", "chrf", "ter")
        for name, theirs in zip(("bleu", "chrf", "ter"), whole, strict=True):
            assert ours[name] == pytest.approx(theirs["score"], abs=1e-7)
            assert ours["signatures"][name] == theirs["signature"]
        verbose = r"([\d./]+) \(BP = ([\d.]+) ratio = ([\d.]+)"
        precisions, brevity, ratio = re.match(verbose, whole[0]["verbose_score"]).groups()
        individual = [float(one) * float(brevity) for one in precisions.split("/")]
        assert ours["bleu_table"]["individual"] == pytest.approx(individual, abs=0.1)
        assert ours["bleu_table"]["cumulative"][3] == pytest.approx(whole[0]["score"], abs=1e-4)
        assert ours["length_ratio"] == pytest.approx(float(ratio), abs=5.1e-4)

        lengths = [len(tokens) for tokens in bleu_tokens(systems.references)]
        for bucket in ours["buckets"]:
            longest = bucket["longest"] or max(lengths)
            rows = [row for row, length in enumerate(lengths) if bucket["shortest"] <= length <= longest]
            hypotheses, references = ([side[row] for row in rows] for side in (systems.good, systems.references))
            part = sacrebleu(write("r", references), "-i", write("h", hypotheses), "-m", "bleu", "chrf")
            assert [bucket["bleu"], bucket["chrf"]] == pytest.approx([one["score"] for one in part], abs=1e-7)

        lines = sacrebleu(files[3], "-i", files[1], "-sl", "-m", "chrf").splitlines()
        for one in (*ours["best"], *ours["worst"]):
            assert one["chrf"] == pytest.approx(float(lines[one["line"] - 1].split(" = ")[1]), abs=1e-7)

    def test_only_the_requested_metrics(self, tmt, files):
        _, out, _ = tmt(*files, "--chrf")
        assert out.startswith("chrF2|")
        assert "BLEU|" not in out
        assert "TER|" not in out

    def test_a_baseline_is_compared(self, tmt, files, systems, write):
        bad = write("bad", systems.bad)
        assert f"baseline: {bad}" in tmt(*files, "--chrf", "--baseline", bad)[1].splitlines()
        _, out, _ = tmt(*files, "--chrf", "--baseline", bad, "--json")
        assert json.loads(out)["baseline"] == str(bad)
        comparison = json.loads(out)["comparison"]
        assert set(comparison) == {"chrf"}
        assert comparison["chrf"]["significant"]
        assert comparison["chrf"]["verdict"] == "better"

    def test_a_few_sentences_give_no_verdict(self, tmt, systems, write):
        best = write("best", systems.references[:5]), "--baseline", write("worst", systems.bad[:5])
        _, out, err = tmt("--hypothesis", *best, "--reference", write("few", systems.references[:5]), "--json")
        assert [one["verdict"] for one in json.loads(out)["comparison"].values()] == [None] * 3
        assert "too few to tell a better system from chance: 5 sentences, and" in err

    def test_a_picture_does_not_replace_the_baseline(self, tmt, files, systems, write):
        bad = write("bad.png", systems.bad)
        code, _, err = tmt(*files, "--baseline", bad, "--plot", bad)
        assert code == 2
        assert "bad.png" in err
        assert Path(bad).read_text(encoding="utf-8").splitlines() == list(systems.bad)

    def test_empty_translations_and_capitals_in_tokens_are_told(self, tmt, write):
        texts = (
            write("some", ["A cat.", "", "A dog."]),
            "--reference",
            write("right", ["A cat.", "Two cats.", "A dog."]),
        )
        _, _, err = tmt("--hypothesis", *texts, "--bleu", "--tokenized-reference", write("tok", ["A cat .", "b", "c"]))
        assert "some: 1 of 3 translations is empty, the first on line 2" in err
        assert "tok: has capital letters" in err

    def test_worse_than_the_baseline_is_said(self, tmt, write, systems):
        bad, good, references = (
            write(name, lines)
            for name, lines in zip("bgr", (systems.bad, systems.good, systems.references), strict=True)
        )
        _, out, _ = tmt("--hypothesis", bad, "--reference", references, "--baseline", good)
        rows = {line.split()[0]: line.split()[-1] for line in out.splitlines() if " ± " in line}
        assert rows == {"BLEU": "worse", "chrF2": "worse", "TER": "worse"}  # TER, where lower is better, rises
        signed = [line.split("|")[0] for line in out.splitlines() if "|bs:1000|" in line]
        assert signed == ["BLEU", "chrF2", "TER"]
        assert f"The 10 worst by chrF2 (line of {references}: chrF2)" in out

    def test_tokenised_scores_on_request(self, tmt, files):
        _, out, _ = tmt(*files, "--bleu", "--tokenized", "--language", "de", "--json")
        values = json.loads(out)
        assert "case:lc" in values["lowercased_bleu"]["signature"]
        assert "tok:none" in values["literature_bleu"]["signature"]

    def test_a_published_tokenised_reference_is_taken_as_it_is(self, tmt, write):
        arguments = "--hypothesis", write("h", ["Ein Hund, sagt er."]), "--reference", write("r", ["Ein Hund sagt er."])
        published = write("tok", ["ein hund , sagt er ."])
        _, out, _ = tmt(*arguments, "--tokenized-reference", published, "--language", "de", "--json")
        assert json.loads(out)["literature_bleu"]["bleu"] == pytest.approx(100)

    def test_lines_end_at_line_feeds_alone(self, tmt, write):
        lines = [
            "Ein\u2028Hund läuft über die Wiese",
            "Zwei\x0cKatzen\x85 schlafen\r am Tag",
            "\tHunde\x1dbellen laut heute",
        ]
        _, out, _ = tmt("--hypothesis", write("h", lines), "--reference", write("r", lines), "--json")
        assert json.loads(out)["sentences"] == 3
        assert json.loads(out)["bleu"] == pytest.approx(100)

    def test_korean_says_on_stderr_when_it_is_not_split_into_morphemes(self, tmt, write, monkeypatch):
        from transformer_mt.evaluation import metrics

        monkeypatch.setattr(metrics, "find_spec", lambda name: None)
        korean = "--hypothesis", write("h", ["나는 책을 읽었다."]), "--reference", write("r", ["나는 책을 읽었다."])
        code, out, err = tmt(*korean, "--language", "ko", "--json")
        assert code == 0
        assert json.loads(out)["signature"].count("tok:13a")
        assert "sacrebleu[ko]" in err

    def test_korean_without_a_language_says_so(self, tmt, write):
        korean, english = ["나는 책을 읽었다."], ["I read a book."]
        code, _, err = tmt("--hypothesis", write("h", korean), "--reference", write("r", korean), "--bleu")
        assert code == 0
        assert "the language is unknown, so BLEU is tokenised by 13a; set it:  --language ko" in err
        assert tmt("--hypothesis", write("h", english), "--reference", write("r", english), "--bleu")[2] == ""

    def test_torch_is_not_imported_without_the_table(self, systems, write):
        arguments = [
            "--hypothesis",
            write("good", systems.good),
            "--reference",
            write("r", systems.references),
            "--ter",
        ]
        program = (
            "import sys\nfrom transformer_mt.cli import main\n"
            "try:\n    main.run()\nexcept SystemExit as left:\n    sys.exit(left.code or 'torch' in sys.modules)"
        )
        command = [sys.executable, "-c", program, "evaluate", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr


class TestModel:
    def test_a_test_set_is_translated_scored_and_stored(self, tmt, model):
        code, out, _ = tmt("--model", model, "--json", "--device", "cpu")
        values = json.loads(out)
        translator = Translator.load([model])
        translations = [translation.text for translation in translator.translate(SOURCES)]
        nats, tokens, _ = translator.reference_loss(SOURCES, REFERENCES)
        assert code == 0
        assert values["test_set"] == "test_one"
        assert values["chrf"] == score(translations, REFERENCES, "en")["chrf"].value
        assert values["loss"] == pytest.approx(nats / tokens)
        assert values["perplexity"] == pytest.approx(2.718281828 ** (nats / tokens))
        assert values["best"][0]["source"] in SOURCES
        assert "whitespace words" in values["bleu_table"]["tokens"]
        stored = json.loads((model / "scores.json").read_text())["test_one"]
        assert {key: stored[key] for key in ("bleu", "chrf", "ter", "sentences", "signatures", "loss")} == {
            key: values[key] for key in ("bleu", "chrf", "ter", "sentences", "signatures", "loss")
        }
        assert stored["decoding"]["beam"] == 2
        assert len(stored["text"]) == 64
        assert stored["date"].startswith("20")

    def test_translations_are_written_and_score_the_same(self, tmt, model, write, tmp_path):
        file = tmp_path / "translations.txt"
        code, out, _ = tmt("--model", model, "--json", "--device", "cpu", "-o", file)
        values, lines = json.loads(out), file.read_text(encoding="utf-8").split("\n")
        translator = Translator.load([model])
        assert code == 0
        assert lines == [*(one.text for one in translator.translate(SOURCES)), ""]
        assert values["model"] == str(model)
        assert values["decoding"] == translator.decoding.model_dump(mode="json")
        given = "--hypothesis", file, "--reference", write("references", REFERENCES), "--language", "en"
        again = json.loads(tmt(*given, "--json")[1])
        assert (again["bleu"], again["chrf"], again["model"]) == (values["bleu"], values["chrf"], None)

    def test_a_place_that_cannot_be_written_is_found_before_the_translating(self, tmt, model, tmp_path, write):
        source = write("s", SOURCES)
        files = "--source", source, "--reference", write("r", REFERENCES)
        for place, problem in (
            (tmp_path / "none" / "h", "no such folder"),
            (source, "given twice"),
            ("-", "stdout"),
            ("/dev/stdout", "stdout"),
        ):
            code, out, error = tmt("--model", model, *files, "-o", place)
            assert (code, out) == (2, ""), place
            assert problem in error
            assert "translating" not in error
        assert source.read_text() == "".join(f"{line}\n" for line in SOURCES)

    def test_a_file_of_a_model_a_run_or_a_config_is_not_replaced(self, tmt, model, tmp_path):
        (tmp_path / "my.yaml").write_text("name: mine\n")
        (model.parent / "metrics.jsonl").write_text("{}\n")
        files = [
            tmp_path / "my.yaml",
            model / "model.safetensors",
            model / "config.yaml",
            model.parent / "metrics.jsonl",
        ]
        for file in files:
            before = file.read_bytes()
            code, out, error = tmt("--model", model, "-o", file)
            assert (code, out) == (2, ""), file
            assert "it is not replaced" in error
            assert file.read_bytes() == before

    def test_a_file_of_a_corpus_is_not_replaced(self, tmt, model, tmp_path, monkeypatch):
        """Not by any name, though the records of another run are damaged."""
        monkeypatch.chdir(tmp_path)
        corpus = tmp_path / "data" / "test.en"
        corpus.parent.mkdir()
        corpus.write_text("The references.\n")
        (tmp_path / "link").symlink_to(corpus)
        records = {"a": "{", "b": "[]", "c": json.dumps([{"corpus": [{"path": "gone"}, {"path": "data/test.en"}]}])}
        for name, text in records.items():
            (tmp_path / "runs" / name).mkdir(parents=True)
            (tmp_path / "runs" / name / "run.json").write_text(text)
        for given in (corpus, "data/test.en", "link"):
            code, out, error = tmt("--model", model, "-o", given)
            assert (code, out) == (2, "")
            assert f"{given}: this file belongs to the corpus of runs/c: it is not replaced" in error
        (tmp_path / "else" / "where").mkdir(parents=True)
        monkeypatch.chdir(tmp_path / "else" / "where")
        shutil.copytree(model, tmp_path / "runs" / "c" / "model")
        for trained in ("../../runs/c", tmp_path / "runs" / "c" / "model"):
            code, out, error = tmt("--model", trained, "-o", corpus)
            assert (code, out) == (2, "")
            assert "this file belongs to the corpus of" in error
        assert corpus.read_text() == "The references.\n"

    def test_prepared_data_and_its_corpus_are_not_replaced(self, tmt, model, tmp_path, monkeypatch):
        """Also if nothing was trained with it."""
        monkeypatch.chdir(tmp_path)
        prepared, corpus = tmp_path / "data" / "prepared" / "x", tmp_path / "test.en"
        corpus.write_text("The references.\n")
        for folder in ("train", "validation", "source"):
            (prepared / folder).mkdir(parents=True)
        (prepared / "manifest.json").write_text(
            json.dumps({"settings": {}, "files": [{"path": "test.en"}], "splits": {}})
        )
        (prepared / "validation" / "target.txt").write_text("Ein Satz.\n")
        code, out, error = tmt("--model", model, "-o", "test.en")
        assert (code, out) == (2, "")
        assert "test.en: this file belongs to the corpus of data/prepared/x: it is not replaced" in error
        for file in (prepared / "manifest.json", prepared / "validation" / "target.txt"):
            code, out, error = tmt("--model", model, "-o", file)
            assert (code, out) == (2, "")
            assert "this file belongs to a model, a run or prepared data: it is not replaced" in error
        for own in (tmp_path / "new.en", prepared / "mine.txt"):
            own.write_text("old")
            assert tmt("--model", model, "-o", own)[0] == 0
        (prepared / "manifest.json").write_text('{"name": "of another program"}')
        assert tmt("--model", model, "-o", prepared / "validation" / "target.txt")[0] == 0

    def test_translations_are_written_if_nobody_reads_the_scores(self, tmt, model, tmp_path, monkeypatch):
        class Gone(io.StringIO):
            def write(self, text):
                raise BrokenPipeError

        monkeypatch.setattr(sys, "stdout", Gone())
        assert tmt("--model", model, "--device", "cpu", "-o", tmp_path / "h")[0] == 0
        assert len((tmp_path / "h").read_text().splitlines()) == len(SOURCES)

    def test_translations_that_are_given_are_not_written_again(self, tmt, files, tmp_path):
        code, out, error = tmt(*files, "-o", tmp_path / "h")
        assert (code, out) == (2, "")
        assert "--output writes translations, and --hypothesis has them already" in error

    def test_options_of_the_search_reach_it_and_are_stored(self, tmt, model):
        tmt(
            "--model", model, "--split", "validation", "--beam", 1, "--length-penalty", 0.0, "--chrf", "--device", "cpu"
        )
        stored = json.loads((model / "scores.json").read_text())["validation"]
        assert (stored["decoding"]["beam"], stored["decoding"]["length_penalty"]) == (1, 0.0)
        assert "bleu" not in stored

    def test_minimum_bayes_risk_among_the_results_of_a_beam(self, tmt, model):
        _, out, _ = tmt("--model", model, "--mbr", "--beam", 3, "--chrf", "--json", "--device", "cpu")
        decoding = DecodingConfig(method="mbr", candidates="beam", beam=3, max_length_ratio=1.0, max_length_offset=2)
        translations = [one.text for one in Translator.load([model], decoding).translate(SOURCES)]
        assert json.loads(out)["chrf"] == score(translations, REFERENCES, "en")["chrf"].value
        stored = json.loads((model / "scores.json").read_text())["test_one"]["decoding"]
        assert (stored["method"], stored["candidates"], stored["beam"]) == ("mbr", "beam", 3)

    def test_a_split_that_cannot_be_scored_is_not_offered(self, tmt, model):
        for split, problem in (("dev", "unknown split 'dev'"), ("train", "the training split is not for evaluation")):
            code, _, err = tmt("--model", model, "--split", split)
            assert code == 2
            assert problem in err
            assert "Use one of: validation, test_one, test_two." in err

    def test_a_hypothesis_file_is_scored_on_the_models_split(self, tmt, model, write):
        _, out, _ = tmt("--model", model, "--split", "test_two", "--hypothesis", write("h", REFERENCES), "--json")
        assert json.loads(out)["chrf"] == pytest.approx(100)
        assert json.loads(out)["loss"] is None
        assert not (model / "scores.json").exists(), "these are not the model's translations"

    def test_own_files(self, tmt, model, tmp_path, monkeypatch):
        """Two files of the same name in two folders are two test sets; the name of a folder need not be UTF-8."""
        folders = [tmp_path / name for name in ("news", os.fsdecode(b"Gespr\xe4che"))]
        for folder in folders:
            folder.mkdir()
            (folder / "test.en").write_text("\n".join(SOURCES[:4]) + "\n", encoding="utf-8")
            (folder / "test.de").write_text("\n".join(REFERENCES[:4]) + "\n", encoding="utf-8")
            monkeypatch.chdir(folder)
            for reference in ("test.de", folder / "test.de"):
                files = "--source", "test.en", "--reference", reference
                code, out, _ = tmt("--model", model, *files, "--chrf", "--json", "--device", "cpu")
                shown = str(reference).replace(os.fsdecode(b"\xe4"), "\ufffd")
                assert (code, json.loads(out)["sentences"], json.loads(out)["test_set"]) == (0, 4, shown)
        assert [name.rpartition("/")[0] for name in json.loads((model / "scores.json").read_text("utf-8"))] == [
            str(folders[0]),
            f"{tmp_path}/Gespr\ufffdche",
        ]

    def test_several_references_make_one_test_set(self, tmt, model, write, sacrebleu, tmp_path):
        """Scores as sacreBLEU's; the loss is over all references; the table counts words of any of them."""
        others = [line.replace("A", "D") for line in REFERENCES]
        files = write("r", REFERENCES), write("o", others)
        given = "--source", write("s", SOURCES), "--reference", files[0], "--reference", files[1]
        output = tmp_path / "h"
        code, out, err = tmt("--model", model, *given, "--tokenized", "--json", "--device", "cpu", "-o", output)
        values = json.loads(out)
        assert (code, values["test_set"]) == (0, f"{files[0]} + {files[1]}"), err
        for name, theirs in zip(
            ("bleu", "chrf", "ter"), sacrebleu(*files, "-i", output, "-m", "bleu", "chrf", "ter"), strict=True
        ):
            assert (values[name], values["signatures"][name]) == (pytest.approx(theirs["score"]), theirs["signature"])
        (lower,) = [sacrebleu(*files, "-i", output, "-lc")]
        assert values["lowercased_bleu"]["bleu"] == pytest.approx(lower["score"])
        assert values["literature_bleu"]["signature"].startswith("nrefs:2|")
        nats, tokens, _ = Translator.load([model]).reference_loss(SOURCES * 2, REFERENCES + others)
        assert values["loss"] == pytest.approx(nats / tokens)
        assert {example["others"][0] for example in values["worst"]} <= set(others)
        assert list(json.loads((model / "scores.json").read_text("utf-8"))) == [values["test_set"]]
        scored = "--hypothesis", output, *given[2:], "--language", "en"
        text = tmt(*scored)[1]
        assert text.split("\n\n")[0] == "\n".join(
            one.line for one in score(output.read_text().splitlines(), REFERENCES, "en", others=[others]).values()
        )
        assert "\n  reference   A B C D\n  reference   D B C D\n" in text
        assert "2 sentences of" not in tmt(*scored)[2]

    def test_figures_of_other_sentences_are_not_mixed(self, tmt, model, write):
        reference = write("references", REFERENCES[:3])
        for sources, metric in ((SOURCES[:3], "--bleu"), (SOURCES[3:6], "--chrf")):
            source = write("sources", sources)
            assert (
                tmt("--model", model, "--source", source, "--reference", reference, metric, "--device", "cpu")[0] == 0
            )
        (stored,) = json.loads((model / "scores.json").read_text("utf-8")).values()
        assert "chrf" in stored
        assert "bleu" not in stored, "that was of other sentences"

    def test_sentences_that_are_too_long_for_the_model_are_reported(self, tmt, model, write):
        long = " ".join(["one"] * 300)
        source, reference = write("sources", [long, "one"]), write("references", [long, long])
        code, _, error = tmt("--model", model, "--source", source, "--reference", reference, "--threads", 1)
        most = load_config(model / "config.yaml").data.max_length
        assert code == 0
        assert f"1 source cut to {most} tokens, the limit of the model\n" in error
        assert f"2 references cut to {most} tokens, the limit of the model, for the loss only" in error

    @pytest.mark.parametrize("search", [("--mbr", "--samples", 2), ("--beam", 4)])
    def test_translations_that_lack_a_placeholder_are_counted(self, tmt, model, write, search):
        source, reference = write("sources", ["one {x} two", "one", "%s one"]), write("references", ["a", "b", "c"])
        code, _, error = tmt("--model", model, "--source", source, "--reference", reference, *search, "--threads", 1)
        assert code == 0
        note = "2 translations without an address, placeholder or tag of the source"
        assert (note in error) == (search[0] == "--mbr")

    def test_the_score_after_training_is_the_same(self, tmt, model):
        ((name, report),) = evaluate_splits(model, ["test_one"], "cpu")
        stored = json.loads((model / "scores.json").read_text())["test_one"]
        _, out, _ = tmt("--model", model, "--json", "--device", "cpu")
        assert stored["chrf"] == json.loads(out)["chrf"]
        assert name == "test_one"
        assert stored["signatures"]["bleu"] == report.scores["bleu"].signature

    def test_a_baseline_of_another_direction_is_refused(self, tmt, model, tmp_path):
        back = tmp_path / "back"
        shutil.copytree(model, back)
        text = (back / "config.yaml").read_text().replace("source: de", "source: ko", 1)
        (back / "config.yaml").write_text(text)
        code, out, error = tmt("--model", model, "--baseline", back)
        assert (code, out) == (2, "")
        assert "this baseline translates ko-en, not de-en" in error

    def test_a_baseline_model_needs_sentences_to_translate(self, tmt, model, files):
        code, out, error = tmt(*files, "--baseline", model)
        assert (code, out) == (2, "")
        assert "a baseline model needs sentences to translate\n  Add --source FILE." in error

    def test_stored_scores_that_are_damaged_are_kept_beside(self, tmt, model):
        (model / "scores.json").write_text('{"test_one": {"bleu": 3', encoding="utf-8")
        code, _, error = tmt("--model", model, "--device", "cpu")
        assert code == 0
        assert f"{model / 'scores.json'} was damaged: it is now scores.json.damaged1" in error
        assert (model / "scores.json.damaged1").read_text(encoding="utf-8") == '{"test_one": {"bleu": 3'
        assert "test_one" in json.loads((model / "scores.json").read_text(encoding="utf-8"))

    def test_another_model_as_baseline_and_an_ensemble(self, tmt, model):
        arguments = "--chrf", "--json", "--device", "cpu", "--baseline", model.parent
        code, out, _ = tmt("--model", model, "--model", model, *arguments)
        comparison = json.loads(out)["comparison"]["chrf"]
        assert code == 0
        assert comparison["baseline"] == pytest.approx(comparison["system"])
        assert not comparison["significant"]

    def test_different_searches_of_a_model_and_its_baseline_are_told(self, tmt, model, tmp_path, write):
        other, source = tmp_path / "other", write("source", ["ein Satz", "zwei Wörter"])
        shutil.copytree(model, other)
        text = (other / "config.yaml").read_text()
        changed = re.sub(r"length_penalty: \S+", "length_penalty: 1.5", text)
        assert changed != text
        (other / "config.yaml").write_text(changed)
        test_set = "--source", source, "--reference", source, "--chrf", "--device", "cpu", "--baseline", other
        arguments = "--model", model, *test_set
        told = "the models search with different settings: length_penalty 0.6, the baseline 1.5."
        assert told in tmt(*arguments)[2]
        assert "different settings" not in tmt(*arguments, "--length-penalty", "1.5")[2]
        assert "different settings" not in tmt(*arguments, "--hypothesis", source)[2], "only one of them searches"
        (other / "config.yaml").write_text(re.sub(r"temperature: \S+", "temperature: 0.5", text))
        assert "different settings" not in tmt(*arguments)[2], "a beam search does not read it"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--source", "{r}"), "--source needs a --reference"),
        (("--reference", "{r}"), "needs translations to compare with"),
        (("--reference", "{r}", "--hypothesis", "{r}", "--split", "test"), "both name a test set"),
        (("--reference", "{r}", "--hypothesis", "{r}", "--language", "german"), "'german' is not an ISO 639 code"),
        (("--reference", "{r}", "--hypothesis", "{r}", "--mbr"), "--mbr has no effect"),
        (("--reference", "{r}", "--hypothesis", "{r}", "--beam", "1"), "--beam has no effect"),
        (("--reference", "{r}", "--hypothesis", "{r}", "--threads", "1"), "--threads has no effect"),
        (("--reference", "{r}", "--hypothesis", "{r}", "--device", "cpu"), "--device has no effect"),
        (("--reference", "{r}", "--hypothesis", "{r}", "--weights", "bfloat16"), "--weights has no effect"),
        (("--reference", "{r}", "--hypothesis", "{missing}"), "missing: no such file"),
        (("--reference", "{r}", "--hypothesis", "{short}"), "short has 1 lines"),
        (("--reference", "{r}", "--hypothesis", "{empty}"), "empty: the file is empty"),
        (("--reference", "{r}", "--hypothesis", "{latin}"), "latin:2: "),
        (("--reference", "{r}", "--hypothesis", "{r}", "--baseline", "{short}"), "short has 1 lines, the test set {r}"),
        (
            ("--reference", "{r}", "--hypothesis", "{r}", "--tokenized-reference", "{short}"),
            "short has 1 lines, the test set {r}",
        ),
        (("--reference", "{r}", "--reference", "{r}", "--hypothesis", "{r}"), "--reference: the same file is given"),
        (
            ("--reference", "{r}", "--reference", "{short}", "--hypothesis", "{r}"),
            "{r} has 2 lines, {short} has 1",
        ),
        (
            ("--reference", "{r}", "--reference", "{two}", "--hypothesis", "{r}", "--tokenized-reference", "{r}"),
            "--tokenized-reference: this is only one form of several references",
        ),
        (("--model", "{missing}"), "no such model folder"),
        (("--model", "{model}", "--plot", "scores.jpg"), "cannot be written as .jpg"),
        (("--model", "{model}", "--plot", "{r}/scores.png"), "{r}/scores.png: found a file instead of a folder"),
        (("--model", "{model}", "--plot", "-"), "'-' is not the name of a picture"),
        (("--model", "{model}", "--theme", "dark"), "--theme needs --plot"),
        (("--model", "{model}", "--split", "nowhere"), "unknown split 'nowhere'"),
        (("--model", "{model}", "--beam", "0"), "--beam"),
        (("--model", "{model}", "--source", "{short}", "--reference", "{r}"), "has 1 lines"),
    ],
)
def test_mistakes_give_one_message_and_exit_code_2(tmt, model, write, tmp_path, arguments, message):
    places = {
        "r": write("r", ["eins", "zwei"]),
        "short": write("short", ["eins"]),
        "two": write("two", ["uno", "dos"]),
        "empty": write("empty", []),
        "latin": tmp_path / "latin",
        "missing": tmp_path / "missing",
        "model": model,
    }
    places["latin"].write_bytes(b"gut\nschlecht \xfc\n")
    code, out, err = tmt(*(argument.format(**places) for argument in arguments))
    assert (code, out) == (2, "")
    assert message.format(**places) in err


def test_what_nobody_can_see_costs_no_score(tmt, model, write):
    """References and translations of others may have another Unicode form and invisible characters."""
    sources, plain = ["a b", "c"], ["A B\u00e9 C D E", "C"]
    odd = ["A B\u0065\u0301 C\u200b D E", "\u200eC"]
    asked = "--model", model, "--source", write("sources", sources), "--json"
    expected, others = write("plain", plain), write("others", odd)
    code, out, err = tmt(*asked, "--reference", expected, "--baseline", others)
    assert (code, "invisible" in err) == (0, False)
    assert json.loads(out)["comparison"]["bleu"]["baseline"] == pytest.approx(100)
    code, again, err = tmt(*asked, "--reference", others, "--baseline", expected)
    assert code == 0
    assert "2 of 2 references of" in err
    assert "invisible characters, entities or another Unicode form than the model writes" in err
    assert json.loads(again)["comparison"]["bleu"]["baseline"] == pytest.approx(100)
    assert json.loads(again)["bleu"] == json.loads(out)["bleu"]
    code, out, _ = tmt("--hypothesis", others, "--reference", expected, "--json")
    assert json.loads(out)["bleu"] < 100, "without a model, as sacreBLEU scores"


def test_files_to_compare_with_are_read_before_the_test_set_is_translated(tmt, model, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "transformer_mt.workflows.evaluate.translated", lambda *_, **__: pytest.fail("translated for nothing")
    )
    for option in ("--baseline", "--tokenized-reference"):
        code, _, err = tmt("--model", model, option, tmp_path / "missing")
        assert (code, "no such file" in err) == (2, True)


def test_an_unwritable_picture_is_refused_before_the_test_set_is_translated(tmt, model, monkeypatch):
    monkeypatch.setattr(
        "transformer_mt.workflows.evaluate.translated", lambda *_, **__: pytest.fail("translated for nothing")
    )
    code, out, err = tmt("--model", model, "--plot", model / "config.yaml" / "scores.png")
    assert (code, out) == (2, "")
    assert "scores.png: found a file instead of a folder" in err


def test_scores_kept_from_before_keep_their_signatures(tmt, model):
    for arguments in ((), ("--bleu",)):
        tmt("--model", model, "--device", "cpu", *arguments)
    (scores,) = json.loads((model / "scores.json").read_text(encoding="utf-8")).values()
    assert {"bleu", "chrf", "ter"} <= scores.keys() & scores["signatures"].keys()


def test_a_model_without_its_data_says_what_to_do(tmt, model, tmp_path):
    (tmp_path / "prepared").rename(tmp_path / "elsewhere")
    code, _, err = tmt("--model", model)
    assert code == 2
    assert "--source FILE --reference FILE" in err


def test_data_prepared_again_from_another_config_is_not_a_test_set_of_the_model(tmt, model, tmp_path):
    """The name is the same, but the sentences are others: the model may have seen them in training."""
    manifest = tmp_path / "prepared" / "tiny" / "manifest.json"
    values = json.loads(manifest.read_text())
    values["settings"]["data"]["max_length"] += 1
    manifest.write_text(json.dumps(values))
    code, out, err = tmt("--model", str(model))
    assert (code, out) == (2, "")
    assert "another config of the same name" in err
    assert "--source FILE --reference FILE" in err
