// The state of the page, and what happens when it changes.

import {
  countLayers,
  drawChoices,
  getWeights,
  listenToTabs,
  showTab,
} from "./controls.js";
import { find, make } from "./dom.js";
import { drawHeatMap, drawNeighbors, drawPredictions, drawSurprisal } from "./panels.js";
import { Problem, ask, getInfo, latest } from "./server.js";
import { EXAMPLES, chooseLanguage, say, setLanguage, translatePage } from "./texts.js";
import { drawSentences, listenForArrows, showChosen, showCounts } from "./words.js";

const DELAY = 200; // milliseconds without a key before the text is sent

const state = {
  info: null, // what the server says about the biLMs
  text: "",
  sentences: [],
  chosen: null, // the sentence and word that were clicked
  tab: "neighbors",
  place: "typed",
  layer: "mix",
  mix: [], // the weight of each layer
  first: 0, // the sentences of the heat map
  second: 0,
};

function showProblem(error) {
  if (!(error instanceof Problem)) throw error;
  find("problem").textContent = error.message;
  find("problem").hidden = false;
}

const hideProblem = () => {
  find("problem").hidden = true;
};

// The text

const readText = latest(async (signal) => {
  try {
    const raw = find("text").value;
    // Half of a character, which some programs paste, could not be sent.
    const text = raw.toWellFormed?.() ?? raw;
    const { sentences } = await ask("/api/text", { text }, signal);
    const before = getChosenWord();
    Object.assign(state, { text, sentences });
    if (getChosenWord() !== before) state.chosen = null;
    keepPairInRange();
    hideProblem();
    drawSentences(state, choose);
    showCounts(state);
    drawPanel();
  } catch (error) {
    if (signal.aborted) return;
    showProblem(error);
  }
});

const getChosenWord = () =>
  state.chosen && state.sentences[state.chosen.sentence]?.words[state.chosen.word];

function keepPairInRange() {
  const last = Math.max(0, state.sentences.length - 1);
  state.first = Math.min(state.first, last);
  state.second = state.second <= last && state.second > 0 ? state.second : Math.min(1, last);
}

function choose(chosen, byPointer = false) {
  state.chosen = chosen;
  showChosen(state);
  drawPanel();
  // On a narrow screen, the results are below the sentences.
  const results = find("results");
  if (byPointer && results.getBoundingClientRect().top > 0.8 * innerHeight) {
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    results.scrollIntoView({ behavior: calm ? "auto" : "smooth" });
  }
}

// The results

const VIEWS = {
  neighbors: {
    path: "/api/neighbors",
    question: () => ({ ...askWord(), weights: getWeights(state), place: state.place }),
    draw: (answers) => drawNeighbors(state, answers, choose),
  },
  predictions: {
    path: "/api/predictions",
    question: () => askWord(),
    draw: (answers) => drawPredictions(state, answers),
  },
  surprisal: {
    path: "/api/surprisal",
    question: () => ({ text: state.text, sentence: state.chosen.sentence }),
    draw: (answers) => drawSurprisal(state, answers),
  },
  "heat-map": {
    path: "/api/heat-map",
    question: () => ({
      text: state.text,
      first: state.first,
      second: state.second,
      weights: getWeights(state),
    }),
    draw: (answers) => drawHeatMap(state, answers),
  },
};

const askWord = () => ({ text: state.text, ...state.chosen });

// Say what is missing before the open tab can show anything; null if nothing is.
function findGap() {
  const needsSoftmax = ["predictions", "surprisal"].includes(state.tab);
  if (needsSoftmax && !state.info.bilms.some((bilm) => bilm.has_softmax)) {
    return "no_softmax";
  }
  if (!state.sentences.length) return "no_text";
  return state.tab !== "heat-map" && state.chosen === null ? "no_word" : null;
}

function drawPanel() {
  showTab(state);
  drawChoices(state, () => refresh());
  refresh();
}

const refresh = latest(async (signal) => {
  const gap = findGap();
  showChosenWord(gap);
  if (gap) {
    find("answer").replaceChildren(make("p", { class: "note" }, say(gap)));
    return;
  }
  const view = VIEWS[state.tab];
  try {
    const { answers } = await ask(view.path, view.question(), signal);
    if (signal.aborted) return;
    hideProblem();
    find("answer").replaceChildren(...view.draw(answers));
  } catch (error) {
    if (signal.aborted) return;
    showProblem(error);
  }
});

function showChosenWord(gap) {
  const isShown = !gap && state.tab !== "heat-map";
  find("chosen").hidden = !isShown;
  if (!isShown) return;
  const number = state.chosen.sentence + 1;
  find("chosen").replaceChildren(
    make("strong", { lang: state.info.lang }, getChosenWord()),
    make("span", { class: "note" }, say("sentence", { number })),
  );
}

// The start

function drawAll() {
  translatePage();
  drawSentences(state, choose);
  showCounts(state);
  drawPanel();
}

function listen() {
  let timer = 0;
  find("text").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(readText, DELAY);
  });
  listenForArrows();
  listenToTabs((tab) => {
    state.tab = tab;
    drawPanel();
  });
  for (const button of document.querySelectorAll("[data-language]")) {
    button.addEventListener("click", () => {
      setLanguage(button.dataset.language, true);
      drawAll();
    });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => refresh());
}

async function start() {
  chooseLanguage();
  translatePage();
  try {
    state.info = await getInfo();
  } catch (error) {
    showProblem(error);
    return;
  }
  state.mix = Array(countLayers(state)).fill(0.5);
  find("bilms").textContent = state.info.bilms.map((bilm) => bilm.name).join(" · ");
  find("text").lang = state.info.lang;
  const example = EXAMPLES[state.info.lang];
  if (example && !find("text").value) find("text").value = example.text;
  listen();
  await readText();
  if (example) chooseExample(example.word);
  document.body.dataset.drawn = "";
}

function chooseExample(text) {
  const [sentence] = state.sentences;
  const word = sentence ? sentence.words.findIndex((each) => each.startsWith(text)) : -1;
  if (word >= 0) choose({ sentence: 0, word });
}

start();
