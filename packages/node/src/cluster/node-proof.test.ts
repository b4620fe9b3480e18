import { FakeClock } from "@sandpiper/core/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { NodeProof } from "./node-proof.ts";

const key = new Uint8Array(32).fill(7);
const request = { method: "POST", path: "/v1/cluster/nudge?x=1", body: Buffer.from("{}") };
const [a, b] = [
  { id: "00000000-0000-4000-8000-00000000000a", url: "http://a:1" },
  { id: "00000000-0000-4000-8000-00000000000b", url: "http://b:1" },
];

let clock: FakeClock;
let sender: NodeProof;
let receiver: NodeProof;

beforeEach(() => {
  clock = new FakeClock();
  sender = new NodeProof({ keys: [key], node: a, clock });
  receiver = new NodeProof({ keys: [key], node: b, clock });
});

const refused = expect.objectContaining({ code: "unauthenticated", reason: "bad_node_proof" });

describe("a node's proof", () => {
  it("identifies the sending node without revealing the secret", () => {
    const header = sender.sign(request, b.url);
    expect(receiver.verify(header, request)).toBe(a.id);
    expect(header).not.toContain(Buffer.from(key).toString("base64url"));
  });

  it("is refused by a node without a URL, to which no node sends requests", () => {
    const unreachable = new NodeProof({ keys: [key], node: { ...b, url: null }, clock });
    for (const url of [b.url, "", "null"]) {
      expect(() => unreachable.verify(sender.sign(request, url), request)).toThrow(refused);
    }
  });

  it("is valid once", async () => {
    const header = sender.sign(request, b.url);
    receiver.verify(header, request);
    await clock.advance(29_000);
    expect(() => receiver.verify(header, request)).toThrow(refused);
  });

  it("is valid for 30 seconds of clock skew in either direction", async () => {
    const header = sender.sign(request, b.url);
    const early = new FakeClock();
    await clock.advance(30_001);
    expect(() => receiver.verify(header, request)).toThrow(refused);
    const fromFuture = sender.sign(request, b.url);
    const behind = new NodeProof({ keys: [key], node: b, clock: early });
    expect(() => behind.verify(fromFuture, request)).toThrow(refused);
    await early.advance(1);
    expect(behind.verify(fromFuture, request)).toBe(a.id);
    await early.advance(59_000);
    expect(() => behind.verify(fromFuture, request), "a second use within the window").toThrow(refused);
  });

  it.each([
    ["another method", { ...request, method: "GET" }],
    ["another path", { ...request, path: "/v1/cluster/nudge" }],
    ["another body", { ...request, body: Buffer.from("{ }") }],
    ["no body", { method: request.method, path: request.path }],
  ])("is invalid for %s", (_, other) => {
    expect(() => receiver.verify(sender.sign(request, b.url), other)).toThrow(refused);
  });

  it("is invalid at another node, with another secret, or in any other form", () => {
    const outsider = new NodeProof({ keys: [new Uint8Array(32)], node: a, clock });
    const header = sender.sign(request, b.url);
    const wrong = [
      sender.sign(request, "http://c:1"),
      outsider.sign(request, b.url),
      header.replace(a.id, b.id),
      header.slice(0, -1),
      `${header} `,
      "",
      a.id,
    ];
    for (const each of wrong) expect(() => receiver.verify(each, request), each).toThrow(refused);
    expect(receiver.verify(header, request), "after invalid attempts").toBe(a.id);
  });
});
