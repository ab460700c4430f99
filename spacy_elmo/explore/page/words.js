// Show the sentences as words that can be clicked.

import { find, joinPieces, make } from "./dom.js";
import { formatNumber, say } from "./texts.js";

const list = () => find("sentences");

// Draw all sentences. Only one word can be reached with Tab; the arrow keys move on.
export function drawSentences(state, choose) {
  list().replaceChildren(
    ...state.sentences.map(({ words, spaces }, sentence) => {
      const item = make("li", { lang: state.info.lang });
      let pieces = [];
      words.forEach((text, word) => {
        pieces.push(makeWord(text, { sentence, word }, choose));
        if (spaces[word] || word === words.length - 1) {
          item.append(joinPieces(pieces), spaces[word] ? " " : "");
          pieces = [];
        }
      });
      return item;
    }),
  );
  showChosen(state);
}

const makeWord = (text, place, choose) =>
  make(
    "button",
    {
      type: "button",
      class: "word",
      tabindex: -1,
      "data-sentence": place.sentence,
      "data-word": place.word,
      onclick: (event) => choose(place, event.detail > 0),
    },
    text,
  );

export function showChosen(state) {
  const { chosen } = state;
  const buttons = [...list().querySelectorAll(".word")];
  for (const button of buttons) {
    const isChosen =
      chosen !== null &&
      Number(button.dataset.sentence) === chosen.sentence &&
      Number(button.dataset.word) === chosen.word;
    button.setAttribute("aria-pressed", isChosen);
    button.tabIndex = isChosen ? 0 : -1;
  }
  if (chosen === null && buttons.length) buttons[0].tabIndex = 0;
}

export function showCounts({ sentences }) {
  const words = sentences.reduce((sum, sentence) => sum + sentence.words.length, 0);
  find("counted").textContent = say("counted", {
    sentences: formatNumber(sentences.length),
    words: formatNumber(words),
  });
}

// Move the focus between words with the arrow keys: left and right by one word, up and
// down by one sentence.
export function listenForArrows() {
  list().addEventListener("keydown", (event) => {
    const buttons = [...list().querySelectorAll(".word")];
    const at = buttons.indexOf(document.activeElement);
    if (at < 0) return;
    const sentence = Number(buttons[at].dataset.sentence);
    const word = Number(buttons[at].dataset.word);
    const inSentence = (number) =>
      buttons.filter((button) => Number(button.dataset.sentence) === number);
    const targets = {
      ArrowLeft: () => buttons[at - 1],
      ArrowRight: () => buttons[at + 1],
      ArrowUp: () => inSentence(sentence - 1)[word] ?? inSentence(sentence - 1).at(-1),
      ArrowDown: () => inSentence(sentence + 1)[word] ?? inSentence(sentence + 1).at(-1),
      Home: () => inSentence(sentence)[0],
      End: () => inSentence(sentence).at(-1),
    };
    const target = targets[event.key]?.();
    if (!target) return;
    event.preventDefault();
    buttons[at].tabIndex = -1;
    target.tabIndex = 0;
    target.focus();
  });
}
