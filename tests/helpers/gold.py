"""Gold data for the tests of `spacy elmo prepare`."""

import srsly
from spacy.vocab import Vocab

from spacy_elmo.text.doc_files import load_docs

# Contains the multiword token "don't", which is "do" and "n't" written together, and
# "du", which is not "de" and "le" written together. Also contains an empty node,
# crossing dependencies, a missing lemma, a wrong space, and entities.
TREES = """\
# sent_id = a-1
# text = I don't see Ann Lee .
1	I	I	PRON	PRP	Case=Nom|Number=Sing	4	nsubj	_	_
2-3	don't	_	_	_	_	_	_	_	_
2	do	do	AUX	VBP	Tense=Pres	4	aux	_	_
3	n't	not	PART	RB	_	4	advmod	_	_
4	see	see	VERB	VB	VerbForm=Inf	0	root	_	_
5	Ann	_	PROPN	NNP	Number=Sing	4	obj	_	NE=B-PERSON
6	Lee	Lee	PROPN	NNP	Number=Sing	5	flat	_	CorrectSpaceAfter=No|NE=L-PERSON
7	.	.	PUNCT	.	_	4	punct	_	_

# sent_id = a-2
# text = A hearing began du jour.
1	A	a	DET	DT	_	2	det	_	_
2	hearing	hearing	NOUN	NN	Number=Sing	3	nsubj	_	_
3	began	begin	VERB	VBD	Tense=Past	0	root	_	_
3.1	_	_	_	_	_	_	_	_	_
4-5	du	_	_	_	_	_	_	_	_
4	de	de	ADP	_	_	6	case	_	_
5	le	le	DET	_	Definite=Def	6	det	_	_
6	jour	jour	NOUN	_	_	2	nmod	_	SpaceAfter=No
7	.	.	PUNCT	.	_	3	punct	_	_

"""
# One sentence; TREE.format(word) sets its first word.
TREE = """\
1	{}	x	NOUN	NN	Number=Sing	2	nsubj	_	_
2	runs	run	VERB	VBZ	_	0	root	_	SpaceAfter=No
3	.	.	PUNCT	.	_	2	punct	_	_

"""


def write_files(folder, files):
    """Write files to a folder.

    files (dict[str, str | list[dict]]): The contents of each file. A list is written
        as JSONL.
    """
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        if not isinstance(content, str):
            content = "".join(srsly.json_dumps(record) + "\n" for record in content)
        (folder / name).write_text(content, encoding="utf-8")
    return folder


def load(path):
    return load_docs(path, Vocab())
