import { JSDOM } from "jsdom";

/*
 * A window and a document for React. Node's own WebSocket and events stay: the client is to meet the wire as it is.
 * Import this before react-dom, which looks for a window when it is loaded.
 */

const { window } = new JSDOM("<!doctype html><body></body>", { url: "http://localhost/" });

Object.assign(globalThis, { window, document: window.document });
