// Ask the server.

import { say, sayProblem } from "./texts.js";

// A problem whose message can be shown to the reader.
export class Problem extends Error {}

async function request(path, options) {
  let response;
  let data;
  try {
    response = await fetch(path, options);
    data = await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(say("no_server"));
  }
  if (!response.ok) throw new Problem(sayProblem(data));
  return data;
}

export const getInfo = () => request("/api/info", {});

export const ask = (path, question, signal) =>
  request(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(question),
    signal,
  });

// Make a function that runs a task and aborts the one that it started before, so that
// a late answer never replaces a newer one.
export function latest(task) {
  let controller = new AbortController();
  return async (...values) => {
    controller.abort();
    const own = (controller = new AbortController());
    try {
      await task(own.signal, ...values);
    } catch (error) {
      if (!own.signal.aborted) throw error;
    }
  };
}
