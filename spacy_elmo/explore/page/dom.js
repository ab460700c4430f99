// Make elements. Text is always added as text, never as HTML.

export const find = (id) => document.getElementById(id);

// Make an element. Attributes that are false or null are left out; names that begin
// with "on" are listeners, and "vars" has CSS variables.
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "vars") setVariables(element, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

function setVariables(element, values) {
  for (const [name, value] of Object.entries(values)) {
    element.style.setProperty(`--${name}`, value);
  }
}

const MAX_JOINED = 24; // characters that always fit on a line

// Keep pieces without spaces between them on one line, unless they are long, as in
// languages that write no spaces.
export function joinPieces(pieces) {
  const joined = make("span", {}, ...pieces);
  if (joined.textContent.length <= MAX_JOINED) joined.className = "joined";
  return joined;
}
