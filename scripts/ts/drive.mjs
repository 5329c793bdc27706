// Drives a test server with the TypeScript SDK's client; one line a step, exit status 0 if each ended as expected.
//
//   node drive.mjs modern URL        the scenario of demo-modern
//   node drive.mjs legacy URL        the scenario of demo-legacy: probe, fallback, session
//   node drive.mjs tour URL [ERA]    any server: list everything, call, read and get everything once; ERA: auto or legacy
import assert from "node:assert/strict";
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [scenario, url, era = "auto"] = process.argv.slice(2);
const uri = "demo://resource/static/1";
const heard = { questions: 0, progress: 0, notifications: [] };

function client(mode) {
  const made = new Client(
    { name: "demo-client-ts", version: "1.0.0" },
    {
      capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} },
      versionNegotiation: { mode },
      inputRequired: { maxRounds: 4 },
    },
  );
  made.setRequestHandler("elicitation/create", async (request) => {
    heard.questions += 1;
    if (request.params.mode === "url") return { action: "accept" };
    return { action: "accept", content: filledIn(request.params.requestedSchema) };
  });
  made.setRequestHandler("sampling/createMessage", async () => {
    heard.questions += 1;
    return { role: "assistant", content: { type: "text", text: "Hello from the model" }, model: "demo-model" };
  });
  made.setRequestHandler("roots/list", async () => {
    heard.questions += 1;
    return { roots: [{ uri: "file:///home/demo", name: "home" }] };
  });
  for (const method of ["notifications/resources/list_changed", "notifications/resources/updated"]) {
    made.setNotificationHandler(method, async () => void heard.notifications.push(method));
  }
  return made;
}

// A plausible value for each property of a schema, or for those in `only`.
function filledIn(schema, only = Object.keys(schema.properties ?? {})) {
  const byName = { uri, city: "Zürich", resourceUri: "test://embedded" };
  const byType = { string: "Ada", integer: 2, number: 2, boolean: true, array: [], object: {} };
  const value = (name, part) =>
    part.default ?? part.enum?.[0] ?? part.oneOf?.[0].const ?? byName[name] ?? byType[[part.type].flat()[0]];
  return Object.fromEntries(only.map((name) => [name, value(name, schema.properties[name])]));
}

async function step(title, run) {
  const said = await run();
  console.log(`ok    ${title}: ${said}`);
}

const text = (result) => result.content.map((block) => block.text).join("");
const until = async (condition) => {
  for (let turn = 0; turn < 250 && !condition(); turn += 1) await new Promise((done) => setTimeout(done, 20));
  assert.ok(condition());
};
async function modern() {
  const mcp = client("auto");
  const transport = new StreamableHTTPClientTransport(new URL(url));
  await mcp.connect(transport);
  await step("tools", async () => {
    const { tools } = await mcp.listTools();
    assert.ok(!tools.some((tool) => tool.name === "invalid_header_tool"));
    return text(await mcp.callTool({ name: "echo", arguments: { message: "hello" } }));
  });
  await step("mirrored parameters", async () => {
    await mcp.callTool({ name: "provision", arguments: { region: "eu", replicas: 2, options: { dryRun: true } } });
    return text(await mcp.callTool({ name: "get_weather", arguments: { city: "Zürich" } }));
  });
  await step("MRTR", async () => {
    await mcp.callTool({ name: "deploy", arguments: { action: "deploy" } });
    await mcp.callTool({ name: "mrtr_two_step", arguments: {} });
    await mcp.callTool({ name: "mrtr_stateless", arguments: {} });
    await mcp.callTool({ name: "mrtr_checkpoint", arguments: {} });
    assert.equal(heard.questions, 4);
    return `${heard.questions} questions`;
  });
  await step("progress", async () => {
    const onprogress = () => void (heard.progress += 1);
    await mcp.callTool({ name: "build_report", arguments: { sections: 3 } }, { onprogress });
    assert.equal(heard.progress, 3);
    return `${heard.progress} events`;
  });
  await step("subscription", async () => {
    const subscription = await mcp.listen({ resourcesListChanged: true, resourceSubscriptions: [uri] });
    await mcp.callTool({ name: "update_resource", arguments: { uri, text: "new" } });
    await until(() => heard.notifications.length >= 2);
    await subscription.close();
    return heard.notifications.join(", ");
  });
  await step("unknown tool", async () => {
    await assert.rejects(mcp.callTool({ name: "teleport", arguments: {} }), { code: -32602 });
    return "-32602";
  });
  await mcp.close();
}

async function legacy() {
  const mcp = client("auto");
  const transport = new StreamableHTTPClientTransport(new URL(url));
  await mcp.connect(transport);
  await step("tools after the fallback", async () => {
    await mcp.listTools();
    return text(await mcp.callTool({ name: "echo", arguments: { message: "hello" } }));
  });
  await step("elicitation", async () => {
    const answer = await mcp.callTool({ name: "collect_elicitation", arguments: { message: "Who are you?" } });
    assert.equal(heard.questions, 1);
    return text(answer);
  });
  await step("subscription", async () => {
    await mcp.subscribeResource({ uri });
    await new Promise((done) => setTimeout(done, 200));
    await mcp.callTool({ name: "update_resource", arguments: { uri, text: "new" } });
    await until(() => heard.notifications.includes("notifications/resources/updated"));
    return heard.notifications.join(", ");
  });
  await transport.terminateSession();
  await mcp.close();
}

// What the tour expects not to succeed, by tool.
const FAILS = {
  trigger_header_mismatch: -32020,
  trigger_missing_capability: -32021,
  trigger_unsupported_version: -32022,
  trigger_method_not_found: -32601,
  trigger_invalid_params: -32602,
  failing_job: -32021,
  test_tool_with_task: -32021,
  mrtr_loop: "INPUT_REQUIRED_ROUNDS_EXCEEDED",
};

async function tour() {
  const mcp = client(era);
  const transport = new (url.endsWith("/sse") ? SSEClientTransport : StreamableHTTPClientTransport)(new URL(url));
  await mcp.connect(transport);
  const capabilities = mcp.getServerCapabilities() ?? {};
  if (capabilities.tools) await step("tools", () => callEverything(mcp));
  if (capabilities.resources) await step("resources", () => readEverything(mcp));
  if (capabilities.prompts) await step("prompts", () => getEverything(mcp));
  if (!url.endsWith("/sse")) await transport.terminateSession();
  await mcp.close();
}

async function callEverything(mcp) {
  const { tools } = await mcp.listTools();
  const called = [];
  for (const { name, inputSchema } of tools) {
    // What takes something away is left out, so that the rest stays there.
    if (name.startsWith("remove_")) continue;
    const properties = Object.entries(inputSchema.properties ?? {});
    const mirrored = properties.filter(([, part]) => part["x-mcp-header"]).map(([key]) => key);
    const wanted = [...new Set([...(inputSchema.required ?? []), ...mirrored])];
    const call = mcp.callTool({ name, arguments: filledIn(inputSchema, wanted) }, { onprogress: () => {} });
    const expected = FAILS[name];
    if (expected === undefined) {
      assert.ok((await call).content, name);
    } else {
      // A JSON-RPC error that came with HTTP 404 is an HTTP error to this SDK, with the text inside.
      const told = (error) => error.code === expected || `${error.data?.text}`.includes(`"code":${expected}`);
      await assert.rejects(call, told, name);
    }
    called.push(name);
  }
  return `called ${called.length}, the client was asked ${heard.questions} time(s)`;
}

async function readEverything(mcp) {
  const { resources } = await mcp.listResources();
  const { resourceTemplates } = await mcp.listResourceTemplates();
  for (const resource of resources) await mcp.readResource({ uri: resource.uri });
  for (const { uriTemplate } of resourceTemplates) {
    await mcp.readResource({ uri: uriTemplate.replace(/\{\?.*?\}/g, "?q=x").replace(/\{\/.*?\}/g, "/a/b").replace(/\{.*?\}/g, "ada") });
  }
  return `read ${resources.length} and ${resourceTemplates.length} by template`;
}

async function getEverything(mcp) {
  const { prompts } = await mcp.listPrompts();
  for (const prompt of prompts) {
    const required = (prompt.arguments ?? []).filter((argument) => argument.required);
    await mcp.getPrompt({ name: prompt.name, arguments: Object.fromEntries(required.map(({ name }) => [name, "Oslo"])) });
  }
  return `got ${prompts.length}`;
}

await { modern, legacy, tour }[scenario]();
