const { config, specs } = JSON.parse(document.getElementById("charts").textContent);
const views = new Map();

const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
tip.setAttribute("aria-hidden", "true"); // the tables hold the same data
document.body.append(tip);

function element(name, text, parent) {
  const made = document.createElement(name);
  made.textContent = text;
  parent.append(made);
  return made;
}

function fillTip(value) {
  tip.replaceChildren();
  if (value.word !== undefined) {
    element("div", value.series, tip).className = "sense";
    const sentence = element("div", value.before, tip);
    sentence.dir = "auto";
    sentence.lang = value.lang;
    element("mark", value.word, sentence);
    sentence.append(value.after);
  } else {
    const list = element("dl", "", tip);
    for (const [label, text] of Object.entries(value)) {
      element("dt", label, list);
      element("dd", text, list);
    }
  }
}

function showTip(handler, event, item, value) {
  tip.hidden = value === null || value === undefined || value === "";
  if (tip.hidden) return;
  fillTip(value);
  // Beside the pointer, but inside the window.
  const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
  const below = event.clientY + 18;
  const fits = below + tip.offsetHeight < innerHeight;
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${fits ? below : event.clientY - tip.offsetHeight - 12}px`;
}

function set(param, value) {
  for (const chart of document.querySelectorAll(`[data-param="${param}"]`)) {
    views.get(chart.id)?.signal(param, value).runAsync();
  }
  for (const text of document.querySelectorAll(`[data-for="${param}"]`)) {
    text.hidden = text.dataset.value !== value;
  }
}

async function draw() {
  const options = {
    actions: false,
    config,
    defaultStyle: false,
    mode: "vega-lite",
    renderer: "svg",
    tooltip: showTip,
  };
  for (const [id, spec] of Object.entries(specs)) {
    try {
      const { view } = await vegaEmbed(document.getElementById(id), spec, options);
      // A tap with a finger does not move a pointer, so it needs its own event.
      view.addEventListener("click", (event, item) =>
        showTip(null, event, item, item?.tooltip),
      );
      views.set(id, view);
    } catch (error) {
      console.error(id, error); // the other charts can still be drawn
    }
  }
  for (const choice of document.querySelectorAll("[data-sets]")) {
    const param = choice.dataset.sets;
    choice.addEventListener("change", (event) => set(param, event.target.value));
    // A browser may restore an earlier choice when the page is loaded again.
    set(param, choice.querySelector("input:checked").value);
  }
  document.body.dataset.drawn = views.size;
}

addEventListener("scroll", () => (tip.hidden = true), { passive: true });
draw();
