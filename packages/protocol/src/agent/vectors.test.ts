import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { isErrorCode } from "../errors/error-codes.ts";
import { notificationSchema, requestSchema, responseSchema } from "./envelope.ts";
import { encodeFrame, type Frame, FrameDecoder, type FrameFault } from "./frame.ts";
import { type AgentMethod, agentMethods } from "./methods.ts";
import { agentNotifications } from "./stream.ts";

const base64 = z.base64().transform((text) => new Uint8Array(Buffer.from(text, "base64")));

const frameVectors = z
  .array(
    z.strictObject({
      name: z.string(),
      to: z.enum(["agent", "host"]),
      message: z.record(z.string(), z.unknown()),
      attachment: base64.optional(),
      wire: base64,
    }),
  )
  .parse(readVectors("frames.json"));

const faultVectors = z
  .array(
    z.strictObject({
      name: z.string(),
      wire: base64,
      error: z.strictObject({ code: z.int(), reason: z.string() }),
    }),
  )
  .parse(readVectors("faults.json"));

const requests = frameVectors.filter(({ message }) => "method" in message && "id" in message);
const notifications = frameVectors.filter(({ message }) => "method" in message && !("id" in message));
const answers = frameVectors.filter(({ message }) => !("method" in message));
const methodOfCall = new Map(requests.map(({ message }) => [message["id"], message["method"] as AgentMethod]));

describe("a golden frame", () => {
  it.each(frameVectors)("is encoded to exactly its bytes: $name", ({ message, attachment, wire }) => {
    expect(join(encodeFrame(withoutBytes(message), attachment))).toEqual(wire);
  });

  it.each(frameVectors)("is decoded from its bytes: $name", ({ message, attachment, wire }) => {
    expect(decode(wire)).toEqual({ frames: [{ message, attachment }], faults: [] });
  });

  it("has a unique name", () => {
    const names = [...frameVectors, ...faultVectors].map(({ name }) => name);
    expect(names).toEqual([...new Set(names)]);
  });
});

// A schema strips what it does not know, so only an equal result shows that it knows every field.
describe("the schemas know every field of", () => {
  it.each(requests)("the request $name", ({ to, message }) => {
    expect(to).toBe("agent");
    expect(requestSchema.parse(message)).toEqual(message);
    const params = message["params"] ?? {};
    expect(agentMethods[message["method"] as AgentMethod].params.parse(params)).toEqual(params);
  });

  it.each(notifications)("the notification $name", ({ message }) => {
    expect(notificationSchema.parse(message)).toEqual(message);
    const { params } = agentNotifications[message["method"] as keyof typeof agentNotifications];
    expect(params.parse(message["params"])).toEqual(message["params"]);
  });

  it.each(answers)("the answer $name", ({ to, message }) => {
    expect(to).toBe("host");
    const answer = responseSchema.parse(message);
    expect(answer).toEqual(message);
    if (answer.error !== undefined) {
      expect(answer.error.data?.code).toSatisfy(isErrorCode);
      return;
    }
    const method = methodOfCall.get(answer.id);
    expect(method, `no vector has the request of answer ${answer.id}`).toBeDefined();
    expect(agentMethods[method as AgentMethod].result.parse(answer.result)).toEqual(answer.result);
  });
});

describe("the vectors", () => {
  it.each(Object.keys(agentMethods))("ask for %s", (method) => {
    expect(requests.map(({ message }) => message["method"])).toContain(method);
  });

  it.each(Object.keys(agentNotifications))("hold a notification %s", (method) => {
    expect(notifications.map(({ message }) => message["method"])).toContain(method);
  });
});

describe("a damaged frame", () => {
  it.each(faultVectors)("gives the reason of its vector: $name", ({ wire, error }) => {
    expect(decode(wire)).toEqual({ frames: [], faults: [error.reason] });
  });

  it.each(faultVectors)("leaves the next frame whole: $name", ({ wire }) => {
    const ping = { jsonrpc: "2.0", id: 1, method: "ping" };
    expect(decode(join([wire, ...encodeFrame(ping)])).frames).toEqual([{ message: ping, attachment: undefined }]);
  });
});

function readVectors(name: string): unknown {
  return JSON.parse(readFileSync(new URL(`../../vectors/${name}`, import.meta.url), "utf8"));
}

function decode(wire: Uint8Array): { frames: Frame[]; faults: FrameFault[] } {
  const frames: Frame[] = [];
  const faults: FrameFault[] = [];
  new FrameDecoder({ frame: (frame) => frames.push(frame), fault: (fault) => faults.push(fault) }).push(wire);
  return { frames, faults };
}

function withoutBytes({ bytes: _, ...message }: Record<string, unknown>): Record<string, unknown> {
  return message;
}

function join(pieces: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(pieces));
}
