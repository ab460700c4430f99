"""Pipelines of `elmo` and some components ("tasks") that use it, with training data.

All words have the shape "xxxx", and by default the tasks embed only shapes. So a task
can distinguish words only by their ELMo vectors.
"""

import spacy
import torch
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import fix_random_seed
from thinc.api import Adam

from spacy_elmo.bilm import BiLM, BiLMConfig, BytesConfig, LSTMConfig
from spacy_elmo.layers import elmo_model, encode_with_gradients

# Each token has a word, lemma, tag, head (index in the doc), dependency label and
# entity label.
DOCS = [
    "green green ADJ 1 amod B-ANIMAL\n"
    "birds bird NOUN 2 nsubj I-ANIMAL\n"
    "sang sing VERB 2 ROOT O\n"
    "loudly loudly ADV 2 advmod O\n"
    "many many ADJ 5 amod O\n"
    "people people NOUN 6 nsubj O\n"
    "listened listen VERB 6 ROOT O",
    "anna anna NAME 2 nsubj B-PERSON\n"
    "smith smith NAME 0 flat I-PERSON\n"
    "visited visit VERB 2 ROOT O\n"
    "berlin berlin NAME 2 obj B-CITY\n"
    "everyone everyone PRON 5 nsubj O\n"
    "cheered cheer VERB 5 ROOT O",
    "trains train NOUN 4 nsubj O\n"
    "from from PREP 2 case O\n"
    "berlin berlin NAME 0 nmod B-CITY\n"
    "were were VERB 4 cop O\n"
    "late late ADJ 4 ROOT O",
]
CATS = ["NATURE", "TRAVEL", "TRAVEL"]

ENCODERS = {
    "maxout": {
        "@architectures": "spacy.MaxoutWindowEncoder.v2",
        "width": 16,
        "depth": 1,
        "window_size": 1,
        "maxout_pieces": 2,
    },
    "maxout v1": {
        "@architectures": "spacy.MaxoutWindowEncoder.v1",
        "width": 16,
        "depth": 1,
        "window_size": 1,
        "maxout_pieces": 2,
    },
    "mish": {
        "@architectures": "spacy.MishWindowEncoder.v2",
        "width": 16,
        "depth": 1,
        "window_size": 1,
    },
    "lstm": {
        "@architectures": "spacy.TorchBiLSTMEncoder.v1",
        "width": 16,
        "depth": 1,
        "dropout": 0.0,
    },
}
EMBEDS = {
    "shapes": {
        "@architectures": "spacy.MultiHashEmbed.v2",
        "width": 16,
        "attrs": ["SHAPE"],
        "rows": [10],
        "include_static_vectors": False,
    },
    "characters": {
        "@architectures": "spacy.CharacterEmbed.v2",
        "width": 16,
        "rows": 50,
        "nM": 4,
        "nC": 4,
        "include_static_vectors": False,
        "feature": "LOWER",
    },
}
LISTENER = {"@architectures": "spacy-elmo.ElmoListener.v1"}

# For each task, a function that returns the annotation that it predicts.
GOLD = {
    "tagger": lambda doc: [token.tag_ for token in doc],
    "morphologizer": lambda doc: [(token.pos_, str(token.morph)) for token in doc],
    "senter": lambda doc: [token.is_sent_start for token in doc],
    "trainable_lemmatizer": lambda doc: [token.lemma_ for token in doc],
    "parser": lambda doc: [(token.head.i, token.dep_) for token in doc],
    "ner": lambda doc: [(ent.start, ent.end, ent.label_) for ent in doc.ents],
    "spancat": lambda doc: {(s.start, s.end, s.label_) for s in doc.spans["sc"]},
    "textcat": lambda doc: max(doc.cats, key=doc.cats.get),
}


def save_tiny(folder, seed=0):
    """Save a tiny biLM with vectors about as large as those of a trained one."""
    torch.manual_seed(seed)
    encoder = BytesConfig(char_dim=4, filters=[[1, 4], [2, 8]])
    bilm = BiLM(BiLMConfig(encoder, LSTMConfig(dim=12, projection_dim=6)))
    with torch.no_grad():
        for weight in bilm.parameters():
            if weight.dim() > 1:
                weight.mul_(2.5)
    bilm.save(folder)
    return str(folder)


def make_examples(nlp, numbers=(0, 1, 2)):
    return [make_example(nlp, number) for number in numbers]


def make_example(nlp, number):
    rows = [line.split() for line in DOCS[number].split("\n")]
    words, lemmas, tags, heads, deps, ents = map(list, zip(*rows))
    gold = Doc(
        nlp.vocab,
        words=words,
        lemmas=lemmas,
        tags=tags,
        pos=["PROPN" if t == "NAME" else "ADP" if t == "PREP" else t for t in tags],
        morphs=["Number=Plur" if word[-1] == "s" else "" for word in words],
        heads=[int(head) for head in heads],
        deps=deps,
        ents=ents,
    )
    gold.spans["sc"] = [Span(gold, e.start, e.end, e.label_) for e in gold.ents]
    gold.cats = {cat: float(cat == CATS[number]) for cat in sorted(set(CATS))}
    return Example(Doc(nlp.vocab, words=words), gold)


def mix(**settings):
    return {"@architectures": "spacy-elmo.ElmoMix.v1", **settings}


def with_elmo(where="input", embed="shapes", encode="maxout", elmo=LISTENER, **mixing):
    return {
        "@architectures": "spacy-elmo.Tok2VecWithElmo.v1",
        "embed": EMBEDS[embed],
        "encode": ENCODERS[encode],
        "elmo": elmo,
        "mix": mix(**mixing),
        "where": where,
    }


def elmo_alone(elmo=LISTENER, **mixing):
    name = "spacy-elmo.ElmoTok2Vec.v1"
    return {"@architectures": name, "elmo": elmo, "mix": mix(**mixing)}


def task_config(factory, tok2vec):
    """Return the config of a component with a small model."""
    if factory in ("parser", "ner"):
        model = {
            "@architectures": "spacy.TransitionBasedParser.v2",
            "state_type": factory,
            "extra_state_tokens": False,
            "hidden_width": 16,
            "maxout_pieces": 2,
            "use_upper": True,
        }
    elif factory == "textcat":
        model = {
            "@architectures": "spacy.TextCatParametricAttention.v1",
            "exclusive_classes": True,
        }
    elif factory == "spancat":
        model = {
            "@architectures": "spacy.SpanCategorizer.v1",
            "reducer": {
                "@layers": "spacy.mean_max_reducer.v1",
                "hidden_size": 16,
            },
            "scorer": {"@layers": "spacy.LinearLogistic.v1"},
        }
    else:
        model = {"@architectures": "spacy.Tagger.v2"}
    config = {"model": {**model, "tok2vec": tok2vec}}
    if factory == "parser":
        config["min_action_freq"] = 1
    if factory == "trainable_lemmatizer":
        config["min_tree_freq"] = 1
    return config


def make_nlp(bilm, tasks, *, seed=0, numbers=(0, 1, 2), **elmo_config):
    """Make and initialize a pipeline of `elmo` and tasks.

    tasks (dict[str, dict]): The tok2vec config of each task. The name of a task is the
        name of its factory, possibly with a number, such as "tagger2".
    numbers (Iterable[int]): Which of the DOCS are the training examples.
    RETURNS (tuple[Language, list[Example]]): The pipeline and its training examples.
    """
    fix_random_seed(seed)
    nlp = spacy.blank("xx")
    nlp.add_pipe("elmo", config={"bilm": bilm, **elmo_config})
    for name, tok2vec in tasks.items():
        factory = name.rstrip("0123456789")
        nlp.add_pipe(factory, name=name, config=task_config(factory, tok2vec))
    examples = make_examples(nlp, numbers)
    nlp.initialize(lambda: examples)
    return nlp, examples


def train(nlp, examples, n_steps, *, optimizer=None, **options):
    """Train a pipeline and return the losses of each step."""
    optimizer = optimizer or Adam(0.02, L2=0.0)
    losses = [{} for _ in range(n_steps)]
    for step in losses:
        nlp.update(examples, sgd=optimizer, losses=step, **options)
    return losses


def wrong(nlp, examples, name):
    """Return a tuple (prediction, expected) for each wrong prediction of a task."""
    gold = GOLD[name.rstrip("0123456789")]
    pairs = []
    for example in examples:
        doc = nlp(example.reference.text)
        pairs.append((gold(doc), gold(example.reference)))
    return [(found, expected) for found, expected in pairs if found != expected]


def learn(nlp, examples, names, learn_rate=0.02):
    """Train until all tasks predict their training examples correctly, or fail."""
    optimizer = Adam(learn_rate, L2=0.0)
    for _ in range(60):
        train(nlp, examples, 5, optimizer=optimizer)
        if not any(wrong(nlp, examples, name) for name in names):
            break
    assert {name: wrong(nlp, examples, name) for name in names} == dict.fromkeys(
        names, []
    )


def bilm_of(nlp):
    return nlp.get_pipe("elmo").model.shims[0].bilm


def weights_of(nlp):
    return {name: p.detach().clone() for name, p in bilm_of(nlp).named_parameters()}


def mixes_of(nlp, name):
    return [node for node in nlp.get_pipe(name).model.walk() if node.name == "elmo-mix"]


def count_encoded_docs(monkeypatch):
    """Return a list to which each call of a biLM, with or without gradients, appends
    the number of docs in its batch."""
    numbers = []
    for module, name in (
        (elmo_model, "encode_docs"),
        (encode_with_gradients, "encode_docs_with_gradients"),
    ):
        original = getattr(module, name)

        def counting(bilm, docs, *args, original=original):
            if docs:
                numbers.append(len(docs))
            return original(bilm, docs, *args)

        monkeypatch.setattr(module, name, counting)
    return numbers
