"""The tags, relations and features that the sample treebanks may contain."""

UPOS = set(
    "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB "
    "X".split()
)
RELATIONS = set(
    "acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det "
    "discourse dislocated expl fixed flat goeswith iobj list mark nmod nsubj nummod "
    "obj obl orphan parataxis punct reparandum root vocative xcomp".split()
)
SUBTYPES = {
    "en": set(
        "acl:relcl advcl:relcl aux:pass cc:preconj compound:prt csubj:outer csubj:pass "
        "det:predet flat:foreign flat:name nmod:desc nmod:npmod nmod:poss nmod:tmod "
        "nmod:unmarked nsubj:outer nsubj:pass obl:agent obl:npmod obl:tmod "
        "obl:unmarked".split()
    ),
    "ko": set(
        "acl:relcl advcl:relcl aux:pass compound:lvc csubj:outer csubj:pass "
        "flat:foreign flat:name nmod:npmod nmod:poss nmod:tmod nsubj:outer nsubj:pass "
        "obl:agent obl:tmod obl:unmarked".split()
    ),
}
XPOS = {
    "en": set(
        "CC CD DT EX FW IN JJ JJR JJS LS MD NN NNP NNPS NNS PDT POS PRP PRP$ RB RBR "
        "RBS RP SYM TO UH VB VBD VBG VBN VBP VBZ WDT WP WP$ WRB ADD AFX GW HYPH NFP "
        "$ `` '' -LRB- -RRB- , . :".split()
    ),
    "ko": set(
        "NNG NNP NNB NP NR VV VA VX VCP VCN MM MAG MAJ IC JKS JKC JKG JKO JKB JKV JKQ "
        "JX JC EP EF EC ETN ETM XPN XSN XSV XSA XR SF SP SS SE SO SW SL SH SN "
        "NA".split()
    ),
}
ENTITIES = set(
    "PERSON ORG GPE LOC FAC PRODUCT EVENT WORK_OF_ART NORP LANGUAGE DATE TIME MONEY "
    "PERCENT QUANTITY CARDINAL ORDINAL".split()
)
MISC = {"SpaceAfter", "NE", "CorrectForm", "CorrectSpaceAfter", "Gloss", "Translit"}

_COMMON = {
    "Abbr": "Yes",
    "Foreign": "Yes",
    "Typo": "Yes",
    "Reflex": "Yes",
    "Polarity": "Neg Pos",
    "Person": "1 2 3",
    "ExtPos": "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PRON PROPN SCONJ VERB",
    "NumForm": "Combi Digit Roman Word",
    "NumType": "Card Frac Mult Ord",
    "Degree": "Cmp Pos Sup",
    "Gender": "Fem Masc Neut",
}
FEATURES = {
    "en": {
        **_COMMON,
        "Case": "Acc Gen Nom",
        "Definite": "Def Ind",
        "Mood": "Imp Ind Sub",
        "Number": "Plur Ptan Sing",
        "Poss": "Yes",
        "PronType": "Art Dem Emp Ind Int Neg Prs Rcp Rel Tot",
        "Style": "Arch Coll Expr Slng Vrnc",
        "Tense": "Past Pres",
        "VerbForm": "Fin Ger Inf Part",
        "Voice": "Pass",
    },
    "ko": {
        **_COMMON,
        "Aspect": "Perf Prog",
        "Case": "Abl Acc Adv All Cmp Com Dat Gen Ins Loc Nom Ter Voc",
        "Evident": "Nfh",
        "Form": "Adn Aux Compl",
        "Mood": "Cnd Des Imp Ind Int Nec Pot Sub",
        "Number": "Plur Sing",
        "Polite": "Elev Form Humb Infm",
        "PronType": "Dem Ind Int Neg Prs Rcp Tot",
        "Tense": "Fut Past Pres",
        "VerbForm": "Conv Fin Ger Inf Part Vnoun",
        "Voice": "Act Cau Pass",
    },
}

# For each language and relation (without its subtype): the UPOS that a word with this
# relation may have.
UPOS_OF = {
    "en": {
        "advmod": "ADV PART ADJ ADP CCONJ SCONJ DET INTJ PRON",
        "amod": "ADJ VERB NUM ADV",
        "aux": "AUX",
        "case": "ADP PART SCONJ ADV VERB SYM",
        "cc": "CCONJ ADV PART SYM",
        "cop": "AUX",
        "det": "DET PRON",
        "expl": "PRON",
        "mark": "SCONJ PART ADP ADV",
        "nummod": "NUM",
        "punct": "PUNCT",
    },
    "ko": {
        "aux": "AUX",
        "case": "ADP PART",
        "cc": "CCONJ ADV SCONJ PART",
        "cop": "AUX",
        "det": "DET PRON",
        "mark": "SCONJ PART ADP ADV",
        "nummod": "NUM NOUN",
        "punct": "PUNCT",
    },
}
# A word with one of the NOMINAL relations cannot have one of the NOT_NOMINAL UPOS.
NOT_NOMINAL = set("ADP AUX CCONJ SCONJ PART PUNCT".split())
NOMINAL = set("nsubj obj iobj nmod vocative appos".split())

# PENN_UPOS has the UPOS that a word with a Penn tag may have. If a word has the first
# of them, it must also have at least one of the features in PENN_FEATURES.
PENN_UPOS = {
    "CC": "CCONJ",
    "CD": "NUM",
    "DT": "DET PRON",
    "EX": "PRON",
    "HYPH": "PUNCT SYM",
    "IN": "ADP SCONJ",
    "JJ": "ADJ",
    "JJR": "ADJ",
    "JJS": "ADJ",
    "MD": "AUX",
    "NN": "NOUN PRON SYM",
    "NNS": "NOUN",
    "NNP": "PROPN ADJ",
    "NNPS": "PROPN ADJ",
    "PDT": "DET",
    "POS": "PART",
    "PRP": "PRON",
    "PRP$": "PRON",
    "RB": "ADV PART",
    "RBR": "ADV",
    "RBS": "ADV",
    "RP": "ADP ADV",
    "TO": "PART ADP",
    "UH": "INTJ",
    "VB": "VERB AUX",
    "VBD": "VERB AUX",
    "VBG": "VERB AUX",
    "VBN": "VERB AUX",
    "VBP": "VERB AUX",
    "VBZ": "VERB AUX",
    "WDT": "PRON DET",
    "WP": "PRON",
    "WP$": "PRON",
    "WRB": "ADV SCONJ",
    "$": "SYM",
    ".": "PUNCT",
    ",": "PUNCT SYM",
    ":": "PUNCT",
    "``": "PUNCT",
    "''": "PUNCT",
    "-LRB-": "PUNCT",
    "-RRB-": "PUNCT",
}
PENN_FEATURES = {
    "JJR": "Degree=Cmp",
    "JJS": "Degree=Sup",
    "RBR": "Degree=Cmp",
    "RBS": "Degree=Sup",
    "MD": "VerbForm=Fin",
    "NN": "Number=Sing",
    "NNP": "Number=Sing",
    "NNS": "Number=Plur Number=Ptan",
    "NNPS": "Number=Plur Number=Ptan",
    "VB": "VerbForm=Inf Mood=Imp Mood=Sub",
    "VBD": "Tense=Past",
    "VBG": "VerbForm=Ger VerbForm=Part",
    "VBN": "VerbForm=Part",
    "VBP": "Tense=Pres",
    "VBZ": "Tense=Pres",
}

# HEAD_FIRST: a word with this relation comes after its head. LEAVES: if a word has this
# relation, its dependents may have only these relations.
HEAD_FIRST = set("conj fixed flat goeswith appos".split())
_FEW = "cc conj fixed goeswith punct reparandum"
LEAVES = {
    "aux": _FEW,
    "cop": _FEW,
    "cc": _FEW,
    "fixed": _FEW,
    "clf": _FEW,
    "mark": _FEW + " advmod obl",
    "case": _FEW + " advmod obl",
    "det": _FEW + " advmod det obl",
    "goeswith": "",
    "punct": "punct",
}
