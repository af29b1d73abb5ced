// @ts-check
// The tools of the agent: what the model is told about each, and what each does.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";

const LIBRARY = new URL("library/", import.meta.url);

/**
 * A tool whose parameters are all texts.
 * @param {string} name
 * @param {string} description
 * @param {Record<string, string>} parameters
 * @returns {import("@anthropic-ai/sdk").Anthropic.Tool}
 */
function tool(name, description, parameters = {}) {
  const described = Object.entries(parameters).map(([key, text]) => [key, { type: "string", description: text }]);
  const properties = Object.fromEntries(described);
  return { name, description, input_schema: { type: "object", properties, required: Object.keys(parameters) } };
}

export const TOOLS = [
  tool("list_files", "List the names of the library's texts, one on each line."),
  tool("read_file", "Read one of the library's texts as a whole.", {
    path: "Name of the text, as list_files gives it.",
  }),
  tool("search_files", "Find the lines that contain a word, in all texts.", {
    word: "The word; upper case is ignored.",
  }),
  tool("get_opening_hours", "Opening hours of one day of the week.", {
    day: "Name of the day in English: Monday.",
  }),
];

const names = () => readdirSync(LIBRARY).sort();

/** @param {string} path */
function read(path) {
  const place = new URL(basename(path), LIBRARY);
  return existsSync(place) ? readFileSync(place, "utf8") : `There is no text ${path}.`;
}

/** @param {string} word */
function search(word) {
  const lines = names().flatMap((name) => read(name).split("\n").map((line) => `${name}: ${line}`));
  const found = lines.filter((line) => line.toLowerCase().includes(word.toLowerCase()));
  return found.join("\n") || "No line contains it.";
}

/** @param {string} day */
function openingHours(day) {
  const days = Object.fromEntries(read("opening-hours.txt").split("\n").map((line) => line.split(": ")));
  return days[day] ?? "There is no such day.";
}

/** @type {Record<string, (input: any) => string>} */
const FUNCTIONS = {
  list_files: () => names().join("\n"),
  read_file: ({ path }) => read(path),
  search_files: ({ word }) => search(word),
  get_opening_hours: ({ day }) => openingHours(day),
};

/**
 * The result of a tool call.
 * @param {string} name
 * @param {any} input
 */
export const runTool = (name, input) => FUNCTIONS[name](input);
