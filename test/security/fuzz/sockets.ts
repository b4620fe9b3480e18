import {
  clientMessageSchema,
  createSandboxBodySchema,
  encodeDataFrame,
  errorReasons,
  serverMessageSchema,
  sessionEventSchema,
  sessionRequestSchema,
} from "@sandpiper/protocol";
import fc from "fast-check";
import type { Bed } from "./bed.ts";
import { jsonText, mutated } from "./malformed-json.ts";
import { checkErrorBody } from "./rest.ts";
import type { FuzzTarget } from "./run-fuzz.ts";
import { schemaOf, validValues } from "./valid-values.ts";
import { type Conversation, converse, type WebSocketInput, webSocketInputs } from "./web-socket.ts";

/** As in docs/sockets.md and RFC 6455; 1005 and 1006 mark the end of a connection that the client closed or broke. */
const documentedCodes: readonly (number | undefined)[] = [
  undefined,
  1000,
  1001,
  1002,
  1003,
  1005,
  1006,
  1007,
  1008,
  1009,
  1011,
  1012,
];

const streams = fc.constantFrom(0, 1, 2, 2 ** 32 - 1);
const inputFrames = fc
  .record({
    stream: streams,
    source: fc.constantFrom("stdin", "stdin", "stdout", "pty"),
    offset: fc.constantFrom(0, 1, 5, 2 ** 40),
    bytes: fc.uint8Array({ maxLength: 300 }),
  })
  .map((frame) => Buffer.from(encodeDataFrame(frame)));

/** Frames of input, whole, cut, or with random bytes in front. */
const binary = fc.oneof(
  { weight: 3, arbitrary: inputFrames },
  { weight: 1, arbitrary: fc.tuple(inputFrames, fc.nat(16)).map(([frame, at]) => frame.subarray(0, at)) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes)) },
);

const clientMessages = fc
  .tuple(validValues(schemaOf(clientMessageSchema)), streams)
  .map(([message, stream]) => ({ ...(message as object), stream }));

const streamInputs = webSocketInputs({
  targets: fc.oneof(
    { weight: 20, arbitrary: fc.constant("/v1/socket") },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        "/v1/socket?x=%ff",
        "/v1/socket/",
        "/v1/sockets",
        "/v1/%73ocket",
        "//v1/socket",
        "/v1/sandboxes",
      ),
    },
  ),
  messages: clientMessages,
  binary,
});

const createQueries = fc.oneof(
  validValues(schemaOf(createSandboxBodySchema)),
  mutated(validValues(schemaOf(createSandboxBodySchema))),
);
const resumes = [
  "?execution=run-1&offset=0",
  "?execution=run-1&offset=%ff",
  "?offset=9",
  "?execution=../a&offset=1",
  "?takeover=true",
  "?takeover=x&takeover=true",
  `?execution=${"a".repeat(100)}`,
  "?__proto__=1",
];

const sessionInputs = webSocketInputs({
  targets: fc.oneof(
    { weight: 8, arbitrary: fc.constant("/attach/@sandbox@") },
    { weight: 2, arbitrary: fc.constantFrom(...resumes).map((query) => `/attach/@sandbox@${query}`) },
    {
      weight: 2,
      arbitrary: fc.constantFrom(
        "/attach/a",
        "/attach/%00",
        "/attach/..",
        "/attach/00000000-0000-4000-8000-000000000000",
        "/attach/",
        "/create/x",
        `/attach/${"a".repeat(5000)}`,
      ),
    },
    { weight: 1, arbitrary: fc.constant("/create?provider=mock") },
    { weight: 2, arbitrary: createQueries.map((query) => `/create?${queryText(query)}`) },
  ),
  messages: validValues(schemaOf(sessionRequestSchema)),
  binary,
});

function queryText(query: unknown): string {
  const pairs = Object.entries(typeof query === "object" && query !== null ? query : { query });
  const text = (value: unknown) => (typeof value === "string" ? value : jsonText(value)).toWellFormed();
  return pairs
    .map(([name, value]) => `${encodeURIComponent(name.toWellFormed())}=${encodeURIComponent(text(value))}`)
    .join("&")
    .slice(0, 8000);
}

/** `/v1/socket`. */
export function socketTarget(bed: Bed): FuzzTarget<WebSocketInput> {
  return targetOf(bed, streamInputs, (text) => {
    const message = serverMessageSchema.parse(JSON.parse(text));
    if (message.type === "error") checkErrorBody(400, JSON.stringify(message.error));
  });
}

/** `/create` and `/attach/<id>`. */
export function sessionTarget(bed: Bed): FuzzTarget<WebSocketInput> {
  return targetOf(bed, sessionInputs, (text) => {
    const event = sessionEventSchema.parse(JSON.parse(text));
    // The client has a sandbox that it did not ask the bed for.
    if (event.event === "sandbox_id") bed.suspect();
    if (!("reason" in event) || event.reason === undefined) return;
    const reason = Object.entries(errorReasons).find(([name]) => name === event.reason)?.[1];
    if (reason === undefined) throw new Error(`unknown reason: ${text}`);
    if (reason.code === "internal" || reason.code === "data_loss") throw new Error(`the node failed: ${text}`);
  });
}

function targetOf(
  bed: Bed,
  inputs: fc.Arbitrary<WebSocketInput>,
  check: (text: string) => void,
): FuzzTarget<WebSocketInput> {
  const { node } = bed;
  const fill = (text: string) => bed.fill(text).replaceAll("@key@", node.apiKey);
  return {
    inputs,
    async send(input) {
      await bed.ready();
      const conversation = await converse(node.port, input, fill);
      for (const text of conversation.texts) check(text);
      node.requireSound();
      return outcomeOf(conversation);
    },
    holdings: () => node.holdings(),
    async useOrdinarily() {
      await bed.useOrdinarily();
      bed.suspect();
      await bed.ready();
    },
  };
}

function outcomeOf({ handshake, closeCode }: Conversation): string {
  if (handshake === "closed") throw new Error("closed without an answer");
  if (handshake.status !== 101) {
    checkErrorBody(handshake.status, handshake.body.toString());
    return String(handshake.status);
  }
  if (!documentedCodes.includes(closeCode)) throw new Error(`closed with ${closeCode}`);
  return closeCode === undefined ? "open" : `closed ${closeCode}`;
}
