import { JSDOM } from "jsdom";

/*
 * A window and a document for React. Node's own WebSocket and events stay: the client is to meet the wire as it is.
 * Import this before react-dom, which looks for a window when it is loaded.
 */

/** One for each process, kept at it: React stays loaded from file to file, with the window that it was loaded with. */
const kept: { [key: symbol]: JSDOM | undefined } = Object(process);
const KEY = Symbol.for("perdure.window");
const { window } = (kept[KEY] ??= new JSDOM("<!doctype html><body></body>", { url: "http://localhost/" }));

window.document.body.replaceChildren();
Object.assign(globalThis, { window, document: window.document });
