// Everything that the page says, in two languages.

const ENGLISH = {
  title: "Words in context",
  language: "Language",
  typing: "Your sentences",
  typing_note: "One sentence per line, or a whole paragraph.",
  click: "Click a word",
  click_note: "Or move between the words with the arrow keys and press Enter.",
  counted: "Sentences: {sentences}. Words: {words}.",
  results: "Results",
  views: "Views",
  neighbors: "Nearest contexts",
  predictions: "Likely words",
  surprisal: "Surprisal",
  heat_map: "Two sentences",
  sentence: "sentence {number}",
  no_text: "Type a sentence first.",
  no_word: "Click a word first.",
  layer: "Layer",
  layer_0: "0, no context",
  layer_top: "{number}, top",
  mix: "Mix",
  weights: "Weights of the layers",
  weight: "Layer {number}",
  place: "Search",
  typed: "these sentences",
  corpus: "the corpus",
  corpus_words: "the corpus ({words} words)",
  no_corpus:
    "To search in a text of your own, start the page with --index and a folder that " +
    "“spacy elmo neighbors --index” wrote.",
  no_own_corpus: "No --index was built with this biLM.",
  neighbors_note: "The number is the cosine with the chosen word: 1 means the same direction.",
  alone: "There is no other word yet. Type another sentence.",
  cosine: "cosine",
  predictions_note:
    "Words that fit between the words before and after, whatever stands there now.",
  surprisal_note:
    "In bits: the higher, the less expected. A word that the biLM does not know counts " +
    "as “some unknown word”.",
  before: "given the words before",
  after: "given the words after",
  word: "word",
  no_softmax:
    "This biLM has no softmax, so it gives no probabilities of words. One that you " +
    "pretrain with “spacy elmo pretrain” has it.",
  rows: "Rows",
  columns: "Columns",
  heat_note: "The darker, the more similar. Point at a number to see its two words.",
  heat_note_dark: "The brighter, the more similar. Point at a number to see its two words.",
  pair: "{row} and {column}: {cosine}",
  heat_caption: "Cosines of the words of two sentences",
  no_server: "The server does not answer. Is “spacy elmo explore” still running?",
  too_long: "The text is too long: at most {limit} characters.",
  too_long_run: "There is no space in more than {limit} characters.",
  too_many_sentences: "There are too many sentences: at most {limit}.",
  too_many_words: "There are too many words: at most {limit}.",
};

const KOREAN = {
  title: "문맥 속의 단어",
  language: "언어",
  typing: "문장 입력",
  typing_note: "한 줄에 한 문장씩 쓰거나 문단을 통째로 붙여 넣으세요.",
  click: "단어를 누르세요",
  click_note: "화살표 키로 단어 사이를 옮겨 다니고 Enter를 눌러도 됩니다.",
  counted: "문장 {sentences}개, 단어 {words}개",
  results: "결과",
  views: "보기",
  neighbors: "가까운 문맥",
  predictions: "올 만한 단어",
  surprisal: "서프라이절",
  heat_map: "두 문장 비교",
  sentence: "{number}번째 문장",
  no_text: "먼저 문장을 입력하세요.",
  no_word: "먼저 단어를 누르세요.",
  layer: "층",
  layer_0: "0, 문맥 없음",
  layer_top: "{number}, 맨 위",
  mix: "혼합",
  weights: "층별 가중치",
  weight: "{number}층",
  place: "찾을 곳",
  typed: "입력한 문장",
  corpus: "말뭉치",
  corpus_words: "말뭉치(단어 {words}개)",
  no_corpus:
    "직접 고른 텍스트에서 찾으려면 ‘spacy elmo neighbors --index’가 만든 폴더를 --index로 " +
    "지정해 이 페이지를 시작하세요.",
  no_own_corpus: "이 biLM으로 만든 --index가 없습니다.",
  neighbors_note: "숫자는 고른 단어와의 코사인 유사도입니다. 1이면 방향이 같습니다.",
  alone: "아직 다른 단어가 없습니다. 문장을 더 입력하세요.",
  cosine: "코사인",
  predictions_note: "지금 있는 단어와 상관없이, 앞뒤 단어로 보아 그 자리에 올 만한 단어입니다.",
  surprisal_note:
    "단위는 비트이며, 클수록 예상 밖의 단어입니다. biLM이 모르는 단어는 모두 ‘미등록어’ 하나로 칩니다.",
  before: "앞 단어들이 주어졌을 때",
  after: "뒤 단어들이 주어졌을 때",
  word: "단어",
  no_softmax:
    "이 biLM에는 소프트맥스가 없어서 단어의 확률을 알 수 없습니다. ‘spacy elmo pretrain’으로 직접 " +
    "학습한 biLM에는 있습니다.",
  rows: "행",
  columns: "열",
  heat_note: "색이 진할수록 비슷합니다. 숫자를 가리키면 두 단어가 나타납니다.",
  heat_note_dark: "색이 밝을수록 비슷합니다. 숫자를 가리키면 두 단어가 나타납니다.",
  pair: "{row} – {column}: {cosine}",
  heat_caption: "두 문장의 단어 사이의 코사인 유사도",
  no_server: "서버가 응답하지 않습니다. ‘spacy elmo explore’가 실행 중인지 확인하세요.",
  too_long: "글이 너무 깁니다. {limit}자까지 입력할 수 있습니다.",
  too_long_run: "{limit}자가 넘도록 빈칸이 없습니다.",
  too_many_sentences: "문장이 너무 많습니다. {limit}개까지 입력할 수 있습니다.",
  too_many_words: "단어가 너무 많습니다. {limit}개까지 입력할 수 있습니다.",
  invalid: "처리할 수 없는 글입니다.",
};

const TEXTS = { en: ENGLISH, ko: KOREAN };
const KEY = "spacy-elmo-language";

// Sentences to begin with, by the language of the biLM, and the word to choose.
export const EXAMPLES = {
  en: {
    text:
      "Let's stick to improvisation in this skit.\n" +
      "We should stick to the plan.\n" +
      "He threw a stick and a stone.",
    word: "stick",
  },
  ko: {
    text:
      "지붕에 쌓인 눈은 무척 무겁다.\n" +
      "사월에 온 눈은 금세 녹아 버렸다.\n" +
      "그 사람의 눈은 웃고 있었다.",
    word: "눈",
  },
};

let language = "en";

// Choose the language: the one that was chosen before, or the browser's.
export function chooseLanguage() {
  const codes = [remember(), ...navigator.languages].filter(Boolean);
  const known = codes.map((code) => code.slice(0, 2)).find((code) => code in TEXTS);
  setLanguage(known ?? "en");
}

export function setLanguage(code, isChoice = false) {
  language = code;
  document.documentElement.lang = code;
  if (isChoice) remember(code);
}

// Storage can be forbidden; the page works without it.
function remember(code) {
  try {
    if (code) localStorage.setItem(KEY, code);
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

export const getLanguage = () => language;

export const formatNumber = (number) => number.toLocaleString(language);

export function say(key, values = {}) {
  return TEXTS[language][key].replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
}

// Say what the server refused: in the language of the page if it is a known problem.
export function sayProblem({ error, code, limit }) {
  if (!(code in TEXTS[language])) return error;
  return say(code, { limit: limit === null ? "" : formatNumber(limit) });
}

// Write all texts of the page that do not change otherwise.
export function translatePage() {
  document.title = say("title");
  for (const element of document.querySelectorAll("[data-text]")) {
    element.textContent = say(element.dataset.text);
  }
  for (const element of document.querySelectorAll("[data-label]")) {
    element.setAttribute("aria-label", say(element.dataset.label));
  }
  for (const button of document.querySelectorAll("[data-language]")) {
    button.setAttribute("aria-pressed", button.dataset.language === language);
  }
}
