// The tabs, and the choices above the answers: layer, weights, place, sentences.

import { find, make } from "./dom.js";
import { formatNumber, say } from "./texts.js";

export const TABS = ["neighbors", "predictions", "surprisal", "heat-map"];

export function showTab(state) {
  for (const name of TABS) {
    const tab = find(`tab-${name}`);
    tab.setAttribute("aria-selected", name === state.tab);
    tab.tabIndex = name === state.tab ? 0 : -1;
  }
  find("panel").setAttribute("aria-labelledby", `tab-${state.tab}`);
}

export function listenToTabs(open) {
  TABS.forEach((name, at) => {
    find(`tab-${name}`).addEventListener("click", () => open(name));
    find(`tab-${name}`).addEventListener("keydown", (event) => {
      const last = TABS.length - 1;
      const target = {
        ArrowLeft: at ? at - 1 : last,
        ArrowRight: at < last ? at + 1 : 0,
        Home: 0,
        End: last,
      }[event.key];
      if (target === undefined) return;
      event.preventDefault();
      open(TABS[target]);
      find(`tab-${TABS[target]}`).focus();
    });
  });
}

// The number of layers of the biLM that has most of them.
export const countLayers = ({ info }) => Math.max(...info.bilms.map((b) => b.n_layers));

// The weight of each layer, between 0 and 1. With all sliders at 0, layers are equal.
export function getWeights(state) {
  if (state.layer !== "mix") return state.mix.map((_, n) => (n === state.layer ? 1 : 0));
  return state.mix.some((weight) => weight > 0) ? state.mix : state.mix.map(() => 1);
}

// Draw the choices of the open tab. `changed` is called when one of them changes.
export function drawChoices(state, changed) {
  const choices = [];
  if (state.tab === "neighbors") choices.push(makePlaces(state, changed));
  if (state.tab === "heat-map") choices.push(makePair(state, changed));
  if (state.tab === "neighbors" || state.tab === "heat-map") {
    choices.push(makeLayers(state, changed));
  }
  find("choices").replaceChildren(...choices);
}

function makeRadios(name, legend, items, chosen, choose) {
  return make(
    "fieldset",
    { class: "choice" },
    make("legend", {}, legend),
    ...items.map(({ value, text, disabled = false }) =>
      make(
        "label",
        {},
        make("input", {
          type: "radio",
          name,
          value,
          checked: value === chosen,
          disabled,
          onchange: () => choose(value),
        }),
        make("span", {}, text),
      ),
    ),
  );
}

function makePlaces(state, changed) {
  const sizes = state.info.bilms.map((bilm) => bilm.n_corpus_words);
  const known = sizes.filter((size) => size !== null);
  const same = known.length && known.every((size) => size === known[0]);
  const items = [
    { value: "typed", text: say("typed") },
    {
      value: "corpus",
      text: same ? say("corpus_words", { words: formatNumber(known[0]) }) : say("corpus"),
      disabled: !known.length,
    },
  ];
  const choose = (place) => {
    state.place = place;
    changed();
  };
  return make(
    "div",
    {},
    makeRadios("place", say("place"), items, state.place, choose),
    known.length ? null : make("p", { class: "note" }, say("no_corpus")),
  );
}

function makeLayers(state, changed) {
  const top = state.mix.length - 1;
  const items = state.mix.map((_, n) => {
    const key = n === 0 ? "layer_0" : n === top ? "layer_top" : null;
    return { value: n, text: key ? say(key, { number: n }) : String(n) };
  });
  items.push({ value: "mix", text: say("mix") });
  const sliders = makeSliders(state, changed);
  sliders.hidden = state.layer !== "mix";
  const choose = (layer) => {
    state.layer = layer;
    sliders.hidden = layer !== "mix";
    changed();
  };
  return make(
    "div",
    {},
    makeRadios("layer", say("layer"), items, state.layer, choose),
    sliders,
  );
}

function makeSliders(state, changed) {
  const outputs = state.mix.map(() => make("output", {}));
  const inputs = state.mix.map((weight, number) =>
    make("input", {
      type: "range",
      id: `weight-${number}`,
      min: 0,
      max: 100,
      value: Math.round(100 * weight),
      oninput: (event) => {
        state.mix[number] = event.target.valueAsNumber / 100;
        showShares();
        changed();
      },
    }),
  );
  const showShares = () => {
    const weights = getWeights({ ...state, layer: "mix" });
    const sum = weights.reduce((a, b) => a + b);
    weights.forEach((weight, number) => {
      const share = `${Math.round((100 * weight) / sum)} %`;
      outputs[number].textContent = share;
      inputs[number].setAttribute("aria-valuetext", share);
    });
  };
  showShares();
  return make(
    "div",
    { class: "sliders", role: "group", "aria-label": say("weights") },
    ...inputs.flatMap((input, number) => [
      make("label", { for: input.id }, say("weight", { number })),
      input,
      outputs[number],
    ]),
  );
}

function makePair(state, changed) {
  const makeSelect = (name, label) =>
    make(
      "label",
      { class: "select" },
      make("span", {}, label),
      make(
        "select",
        {
          lang: state.info.lang,
          onchange: (event) => {
            state[name] = Number(event.target.value);
            changed();
          },
        },
        ...state.sentences.map(({ words, spaces }, number) => {
          const text = words.map((word, k) => word + (spaces[k] ? " " : "")).join("");
          const label = `${number + 1}. ${text}`;
          return make("option", { value: number, selected: state[name] === number }, label);
        }),
      ),
    );
  return make(
    "div",
    { class: "pair" },
    makeSelect("first", say("rows")),
    makeSelect("second", say("columns")),
  );
}
