// What the conformance suite starts as "the client": hands the scenario to the test, where our client is, and waits for it.
const [, , port, url] = process.argv;
const { MCP_CONFORMANCE_SCENARIO: scenario, MCP_CONFORMANCE_CONTEXT: context = "{}" } = process.env;
const body = JSON.stringify({ scenario, url, context: JSON.parse(context) });
const answer = await fetch(`http://127.0.0.1:${port}/`, { method: "POST", body });
const text = await answer.text();
if (!answer.ok) console.error(text);
process.exitCode = answer.ok ? 0 : 1;
