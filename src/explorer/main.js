/** The attention explorer: reads the JSON beside it, draws on canvases, writes text only as text. */
import { explore } from "./explorer.js";

/** @type {NodeListOf<HTMLElement>} */
const roots = document.querySelectorAll(".bertlook-explorer:not([data-started])");
for (const root of roots) {
  root.dataset.started = "";
  if ("DecompressionStream" in window) explore(root, `bertlook-${document.querySelectorAll("[data-started]").length}`);
  else root.append("The attention explorer needs a browser of 2023 or later.");
}
