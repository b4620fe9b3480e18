import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { connect } from "node:net";
import { MockProvider } from "@sandpiper/providers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PORT, PreviewBed } from "./testing/preview-bed.ts";

let bed: PreviewBed;
beforeAll(async () => {
  bed = await PreviewBed.start(new MockProvider(), { previews: { domain: "preview.example.com" } });
});
afterAll(() => bed[Symbol.asyncDispose]());

const echoHeaders = (request: IncomingMessage, response: import("node:http").ServerResponse) => {
  response.end(JSON.stringify({ url: request.url, headers: request.headers }));
};
const BROWSER = { accept: "text/html,*/*" };
const reasonOf = (text: string) => JSON.parse(text).reason as string;

async function linkOf({ id }: { id: string }, body: object = {}): Promise<URL> {
  const { url } = await bed.api("POST", `/v1/sandboxes/${id}/links`, { port: PORT, ...body });
  return new URL(url);
}

describe("a private preview", () => {
  it("refuses visitors without a credential, and says the same about a sandbox that does not exist", async () => {
    const sandbox = await bed.sandbox(echoHeaders);
    const refused = await bed.ask(bed.hostOf(sandbox), "/");
    const unknown = await bed.ask(bed.hostOf({ id: crypto.randomUUID() }), "/");
    expect([refused.status, reasonOf(refused.text)]).toEqual([401, "preview_private"]);
    expect(unknown.status).toBe(401);
    expect({ ...JSON.parse(unknown.text), requestId: "" }).toEqual({ ...JSON.parse(refused.text), requestId: "" });
  });

  it.each(["authorization", "x-api-key"])("accepts an API key in %s, which the server does not see", async (name) => {
    const sandbox = await bed.sandbox(echoHeaders);
    const value = name === "authorization" ? `Bearer ${bed.key}` : bed.key;
    const { status, text } = await bed.ask(bed.hostOf(sandbox), "/", { headers: { [name]: value } });
    expect(status).toBe(200);
    expect(text).not.toContain(bed.key);
    expect(JSON.parse(text).headers).not.toHaveProperty(name);
  });

  it("accepts the sandbox's own token, and no other sandbox's", async () => {
    const [sandbox, other] = [await bed.sandbox(echoHeaders), await bed.create()];
    const ask = (token: string | null) =>
      bed.ask(bed.hostOf(sandbox), "/", { headers: { authorization: `Bearer ${token}` } });
    const answer = await ask(sandbox.token);
    expect(answer.status).toBe(200);
    expect(answer.text).not.toContain(sandbox.token);
    expect((await ask(other.token)).status).toBe(404);
  });

  it("does not exist for keys of other tenants, and refuses read-only keys", async () => {
    const sandbox = await bed.sandbox(echoHeaders);
    const key = async (body: object) => (await bed.api("POST", "/v1/keys", { name: "k", ...body })).key as string;
    const ask = async (credential: string) =>
      await bed.ask(bed.hostOf(sandbox), "/", { headers: { authorization: `Bearer ${credential}` } });
    const foreign = await ask(await key({ tenant: "other", scopes: ["sandboxes"] }));
    expect([foreign.status, reasonOf(foreign.text)]).toEqual([404, "no_such_sandbox"]);
    expect((await ask(await key({ scopes: ["read"] }))).status).toBe(403);
    expect((await ask(`spk_00000000_${"x".repeat(43)}`)).status).toBe(401);
  });

  it("leaves the server's own credentials alone", async () => {
    const sandbox = await bed.sandbox(echoHeaders);
    const headers = {
      authorization: "Bearer my-app-token",
      "x-api-key": "app-key",
      cookie: "a=1; SANDPIPER_NODE=n; b=2",
    };
    const { text } = await bed.ask(bed.hostOf(sandbox), "/", {
      headers: { ...headers, "x-sandpiper-traffic-token": await trafficToken(sandbox) },
    });
    expect(JSON.parse(text).headers).toMatchObject({ ...headers, cookie: "a=1; b=2" });
    expect(text).not.toContain("traffic-token");
  });

  it("accepts the traffic token for every port until it is revoked", async () => {
    const sandbox = await bed.sandbox(echoHeaders);
    const headers = { "x-sandpiper-traffic-token": await trafficToken(sandbox) };
    expect((await bed.ask(bed.hostOf(sandbox), "/", { headers })).status).toBe(200);
    expect((await bed.ask(bed.hostOf(sandbox, 9), "/", { headers })).status).toBe(502);
    await bed.api("DELETE", `/v1/sandboxes/${sandbox.id}/links`);
    const { status, text } = await bed.ask(bed.hostOf(sandbox), "/", { headers });
    expect([status, reasonOf(text)]).toEqual([401, "invalid_link"]);
  });
});

async function trafficToken({ id }: { id: string }): Promise<string> {
  return (await bed.api("GET", `/v1/sandboxes/${id}/ports/${PORT}`)).trafficToken;
}

describe("a link", () => {
  it("sets a cookie for the preview's own origin and leads to the page without the link", async () => {
    const sandbox = await bed.sandbox(echoHeaders);
    const link = await linkOf(sandbox, { path: "/page?x=1" });
    expect(link.host).toBe(`${PORT}-${sandbox.id}.preview.example.com`);
    const first = await bed.ask(link.host, link.pathname + link.search, { headers: BROWSER });
    expect([first.status, first.headers.location]).toEqual([302, `https://${link.host}/page?x=1`]);
    const [cookie = ""] = first.headers["set-cookie"] ?? [];
    expect(cookie).toMatch(/^__Host-sandpiper-preview=\S+; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax; Secure$/);
    const page = await bed.ask(link.host, "/page?x=1", { headers: { cookie: `mine=1; ${cookie.split(";")[0]}` } });
    expect(page.status).toBe(200);
    expect(JSON.parse(page.text)).toMatchObject({ url: "/page?x=1", headers: { cookie: "mine=1" } });
  });

  it("opens no other port and no other sandbox", async () => {
    const [sandbox, other] = [await bed.sandbox(echoHeaders), await bed.sandbox(echoHeaders)];
    const { search } = await linkOf(sandbox);
    for (const host of [bed.hostOf(sandbox, 7), bed.hostOf(other)]) {
      const { status, text } = await bed.ask(host, `/${search}`);
      expect([status, reasonOf(text)]).toEqual([401, "invalid_link"]);
    }
  });

  it("opens the preview at once for programs, never reaches the server, and expires", async () => {
    const sandbox = await bed.sandbox(echoHeaders);
    const { search } = await linkOf(sandbox, { expiresInMs: 1000 });
    const ask = (method = "GET") => bed.ask(bed.hostOf(sandbox), `/${search}&q=1`, { method });
    for (const answer of [await ask(), await ask("POST")]) {
      expect([answer.status, JSON.parse(answer.text).url]).toEqual([200, "/?q=1"]);
    }
    await expect.poll(async () => (await ask()).status, { timeout: 5000 }).toBe(401);
  });

  it("redirects to the preview even if its path looks like another host", async () => {
    const sandbox = await bed.sandbox(echoHeaders);
    const { search } = await linkOf(sandbox);
    const { headers } = await bed.ask(bed.hostOf(sandbox), `//evil.example/${search}`, { headers: BROWSER });
    expect(headers.location).toBe(`http://${bed.hostOf(sandbox)}//evil.example/`);
  });

  it("tells only its holder that the sandbox is gone", async () => {
    const sandbox = await bed.sandbox(echoHeaders);
    const { search } = await linkOf(sandbox);
    await bed.api("DELETE", `/v1/sandboxes/${sandbox.id}`);
    const held = await bed.ask(bed.hostOf(sandbox), `/${search}`, { method: "POST" });
    expect([held.status, reasonOf(held.text)]).toEqual([410, "sandbox_destroyed"]);
    expect((await bed.ask(bed.hostOf(sandbox), "/")).status).toBe(401);
  });
});

describe("a public preview", () => {
  it("is open to everyone until it is private again, also after a restart of the node", async () => {
    const sandbox = await bed.sandbox(echoHeaders);
    const set = (isPublic: boolean) => bed.api("PUT", `/v1/sandboxes/${sandbox.id}/ports/${PORT}`, { isPublic });
    expect(await set(true)).toMatchObject({ isPublic: true });
    expect((await bed.ask(bed.hostOf(sandbox), "/")).status).toBe(200);
    expect((await bed.ask(bed.hostOf(sandbox, 7), "/")).status).toBe(401);
    await bed.restart();
    expect((await bed.ask(bed.hostOf(sandbox), "/")).status).toBe(200);
    await set(false);
    expect((await bed.ask(bed.hostOf(sandbox), "/")).status).toBe(401);
  });

  it("never passes a key of the node on", async () => {
    const sandbox = await bed.sandbox(echoHeaders);
    await bed.api("PUT", `/v1/sandboxes/${sandbox.id}/ports/${PORT}`, { isPublic: true });
    const { text } = await bed.ask(bed.hostOf(sandbox), "/", {
      headers: {
        authorization: `Bearer ${bed.key}`,
        "x-api-key": bed.key,
        "sec-websocket-protocol": `chat, bearer.${bed.key}`,
        "x-sandpiper-node": "x",
      },
    });
    expect(text).not.toContain(bed.key);
    expect(JSON.parse(text).headers["sec-websocket-protocol"]).toBe("chat");
  });

  it("is private again for a fork", async () => {
    const sandbox = await bed.sandbox(echoHeaders);
    await bed.api("PUT", `/v1/sandboxes/${sandbox.id}/ports/${PORT}`, { isPublic: true });
    const { items } = await bed.api("POST", `/v1/sandboxes/${sandbox.id}/fork`, {});
    expect((await bed.ask(bed.hostOf(items[0]), "/")).status).toBe(401);
  });

  it("cuts open connections of visitors when it becomes private", async () => {
    const sandbox = await bed.sandbox((_, response) => response.write("begin"));
    await bed.api("PUT", `/v1/sandboxes/${sandbox.id}/ports/${PORT}`, { isPublic: true });
    const outgoing = bed.open(bed.hostOf(sandbox), "/");
    outgoing.end();
    const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
    const closed = new Promise<void>((resolve) => incoming.once("close", resolve).on("error", () => {}));
    incoming.resume();
    await bed.api("PUT", `/v1/sandboxes/${sandbox.id}/ports/${PORT}`, { isPublic: false });
    await closed;
  });
});

describe("the host names of previews", () => {
  it("never serve the node's API", async () => {
    const sandbox = await bed.sandbox(echoHeaders);
    const headers = { authorization: `Bearer ${bed.key}` };
    const answer = await bed.ask(bed.hostOf(sandbox), "/v1/sandboxes", { headers });
    expect(JSON.parse(answer.text)).toMatchObject({ url: "/v1/sandboxes" });
    for (const name of ["api", "preview", "x.y", `0-${sandbox.id}`, `70000-${sandbox.id}`, "8000-x"]) {
      const { status, text } = await bed.ask(`${name}.preview.example.com`, "/v1/sandboxes", { headers });
      expect([status, reasonOf(text)]).toEqual([404, "no_such_preview"]);
    }
  });

  it("are matched in any case, with a port and the dot of a complete name", async () => {
    const sandbox = await bed.sandbox(echoHeaders);
    const headers = { authorization: `Bearer ${bed.key}` };
    for (const host of [
      `${PORT}-${sandbox.id.toUpperCase()}.Preview.Example.COM:443`,
      `${PORT}-${sandbox.id}.localhost.`,
    ]) {
      expect((await bed.ask(host, "/", { headers })).status).toBe(200);
    }
  });

  it("are not taken from a target that names another host", async () => {
    const sandbox = await bed.sandbox(echoHeaders);
    const socket = connect(Number(bed.port), "127.0.0.1");
    const head = [`GET http://127.0.0.1/v1/sandboxes HTTP/1.1`, `Host: ${bed.hostOf(sandbox)}`, "Connection: close"];
    socket.write(`${[...head, `Authorization: Bearer ${bed.key}`].join("\r\n")}\r\n\r\n`);
    expect(String(Buffer.concat(await socket.toArray()))).toMatch(/^HTTP\/1\.1 400 /);
  });

  it("have URLs that the API reports", async () => {
    const sandbox = await bed.sandbox(echoHeaders);
    const { items } = await bed.api("GET", `/v1/sandboxes/${sandbox.id}/ports`);
    expect(items).toContainEqual({
      port: PORT,
      address: "127.0.0.1",
      pid: 1,
      program: "server",
      url: `https://${PORT}-${sandbox.id}.preview.example.com/`,
      isPublic: false,
    });
  });
});
