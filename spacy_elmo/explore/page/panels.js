// Draw the answers of the server.

import { joinPieces, make } from "./dom.js";
import { getLanguage, say } from "./texts.js";

const formatCosine = (cosine) =>
  cosine === null ? "–" : cosine.toFixed(2).replace("-", "−");

function formatShare(share) {
  if (share === null) return "–";
  const digits = share < 0.1 ? 1 : 0;
  return share.toLocaleString(getLanguage(), {
    style: "percent",
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

const note = (key) => make("p", { class: "note" }, say(key));

// Draw one column for each biLM, with its name if there are several. An answer that is
// null is replaced with a note.
function makeColumns(state, answers, missing, draw) {
  return make(
    "div",
    { class: "columns" },
    ...answers.map((answer, number) =>
      make(
        "div",
        { class: "column" },
        answers.length > 1 ? make("h3", {}, state.info.bilms[number].name) : null,
        answer === null ? note(missing) : draw(answer),
      ),
    ),
  );
}

export function drawNeighbors(state, answers, choose) {
  const draw = (neighbors) =>
    neighbors.length
      ? make(
          "ol",
          { class: "hits", lang: state.info.lang },
          ...neighbors.map((hit) => make("li", {}, ...makeHit(hit, choose))),
        )
      : note("alone");
  return [makeColumns(state, answers, "no_own_corpus", draw), note("neighbors_note")];
}

function makeHit({ cosine, before, word, after, sentence, position }, choose) {
  const isTyped = sentence !== undefined;
  const score = make(
    "span",
    { class: "score", vars: { share: Math.max(0, cosine ?? 0) } },
    make("span", { class: "unseen" }, `${say("cosine")} `),
    formatCosine(cosine),
  );
  const mark = isTyped
    ? make(
        "button",
        { type: "button", class: "hit", onclick: () => choose({ sentence, word: position }) },
        word,
      )
    : make("mark", {}, word);
  // Neither a quote before the word nor a comma after it moves to another line.
  const [, start, left] = before.match(/^(.*?)(\S*)$/s);
  const [, right, rest] = after.match(/^(\S*)(.*)$/s);
  return [score, make("span", {}, start, joinPieces([left, mark, right]), rest)];
}

export function drawPredictions(state, answers) {
  const { sentence, word } = state.chosen;
  const own = state.sentences[sentence].words[word];
  const draw = (predictions) =>
    make(
      "ol",
      { class: "hits", lang: state.info.lang },
      ...predictions.map((each) =>
        make(
          "li",
          {},
          make(
            "span",
            { class: "score", vars: { share: each.share ?? 0 } },
            formatShare(each.share),
          ),
          each.word === own ? make("mark", {}, each.word) : make("span", {}, each.word),
        ),
      ),
    );
  return [makeColumns(state, answers, "no_softmax", draw), note("predictions_note")];
}

export function drawSurprisal(state, answers) {
  const { words } = state.sentences[state.chosen.sentence];
  const all = answers.flat(2).filter((bits) => bits !== null);
  const most = Math.max(1, ...all);
  const cell = (bits) =>
    make(
      "td",
      {},
      make(
        "span",
        { class: "bar", vars: { share: (bits ?? 0) / most } },
        bits === null ? "–" : bits.toFixed(1),
      ),
    );
  const draw = (rows) =>
    make(
      "table",
      { class: "bits" },
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          ...["word", "before", "after"].map((key) => make("th", { scope: "col" }, say(key))),
        ),
      ),
      make(
        "tbody",
        {},
        ...rows.map(([before, after], word) =>
          make(
            "tr",
            { class: word === state.chosen.word ? "own" : null },
            make("th", { scope: "row", lang: state.info.lang }, words[word]),
            cell(before),
            cell(after),
          ),
        ),
      ),
    );
  return [makeColumns(state, answers, "no_softmax", draw), note("surprisal_note")];
}

export function drawHeatMap(state, answers) {
  const { lang } = state.info;
  const rows = state.sentences[state.first].words;
  const columns = state.sentences[state.second].words;
  const draw = (cosines) => {
    const pointed = make("p", { class: "pointed", "aria-hidden": "true" });
    const show = (event) => {
      const { row, column } = event.target.dataset;
      if (row === undefined) return;
      const cosine = formatCosine(cosines[row][column]);
      pointed.textContent = say("pair", { row: rows[row], column: columns[column], cosine });
    };
    const head = make(
      "tr",
      {},
      make("td", {}),
      ...columns.map((word) => make("th", { scope: "col", lang }, make("span", {}, word))),
    );
    const body = rows.map((word, row) =>
      make(
        "tr",
        {},
        make("th", { scope: "row", lang }, make("span", {}, word)),
        ...cosines[row].map((cosine, column) =>
          make(
            "td",
            {
              "data-row": row,
              "data-column": column,
              vars: { share: Math.max(0, cosine ?? 0) },
            },
            formatCosine(cosine).replace("0.", "."),
          ),
        ),
      ),
    );
    const table = make(
      "table",
      { class: "heat", onpointerover: show, onclick: show },
      make("caption", { class: "unseen" }, say("heat_caption")),
      make("thead", {}, head),
      make("tbody", {}, ...body),
    );
    const frame = {
      class: "scroll",
      tabindex: 0,
      role: "region",
      "aria-label": say("heat_caption"),
    };
    return make("div", {}, make("div", frame, table), pointed);
  };
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  const columnsOfAll = makeColumns(state, answers, "no_softmax", draw);
  columnsOfAll.classList.add("wide");
  return [columnsOfAll, note(isDark ? "heat_note_dark" : "heat_note")];
}
