import { errorBodySchema, errorCodes, errorReasons, type OperationId, type Route, routes } from "@sandpiper/protocol";
import fc from "fast-check";
import type { Bed } from "./bed.ts";
import { damaged, damages, jsonText, mutated } from "./malformed-json.ts";
import { type RawAnswer, sendRaw } from "./raw-http.ts";
import type { FuzzTarget } from "./run-fuzz.ts";
import { placeholders, schemaOf, validValues } from "./valid-values.ts";

export interface RestInput {
  readonly operation: string;
  readonly method: string;
  readonly target: string;
  readonly headers: readonly string[];
  readonly body: Buffer;
  readonly framing: "length" | "chunked" | "cut" | "too_short" | "bad_length" | "bad_chunk" | "both";
  /** Replaces the whole request. */
  readonly garbage: string | undefined;
}

const hostileSegments = [
  ...[
    "..",
    ".",
    "%2e%2e",
    "..%2f..%2fetc%2fpasswd",
    "%00",
    "%ff",
    "%",
    "%zz",
    "__proto__",
    "constructor",
    "-1",
    "'",
    "%0d%0aX:%20y",
  ],
  ...[
    "00000000-0000-4000-8000-000000000000",
    "a".repeat(300),
    "a/b",
    "//",
    "*",
    "%F0%9F%98%80",
    "%ED%A0%80",
    ";a=b",
    "?",
  ],
];

const hostileHeaders = [
  "Content-Type: text/plain",
  "Content-Type: application/json; charset=utf-16",
  "Content-Type: application/jsonx",
  "Content-Type: multipart/form-data; boundary=x",
  "Content-Encoding: gzip",
  "Accept: text/event-stream",
  "Accept: \u00ff",
  "Range: bytes=5-1",
  "Range: bytes=-0,9999999999999999999-",
  "Range: lines=1-2",
  "Idempotency-Key: ",
  `Idempotency-Key: ${"k".repeat(3000)}`,
  "Idempotency-Key: \u0001",
  "X-Request-Id: a\tb",
  `X-Request-Id: ${"r".repeat(1000)}`,
  "Origin: null",
  "Origin: https://evil.example.com",
  "Access-Control-Request-Method: DELETE",
  "Expect: 100-continue",
  "Expect: a miracle",
  "Connection: close, x, y",
  "Upgrade: h2c",
  "Host: a b",
  "Host: [::1",
  'X-Forwarded-For: 1.2.3.4, "',
  "Sandpiper-Node-Proof: x",
  "If-Match: *",
  "Bad Header: x",
  ": x",
  "X: \u0000",
  `X: ${"x".repeat(20_000)}`,
  ...Array.from({ length: 3 }, () => Array.from({ length: 300 }, (_, at) => `X-${at}: y`).join("\r\n")),
];

const authorizations = [
  "",
  "Authorization: Bearer",
  "Authorization: Bearer wrong",
  "Authorization: Basic YTpi",
  "Authorization: Bearer spk_00000000_x",
  "Authorization: \u00ff",
];
const KEY = "Authorization: Bearer @key@";

const garbage = fc.oneof(
  fc.constantFrom(
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "\u0016\u0003\u0001\u0002\u0000\u0001",
    "GET\r\n\r\n",
    "GET / HTTP/9.9\r\n\r\n",
    "GET / HTTP/1.1\n\n",
    "\r\n\r\n\r\n",
    "GET http://[/ HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET * HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET /health HTTP/1.1\r\n\r\n",
    "GET /health HTTP/1.0\r\n\r\n",
    "GET /\u00ff\u00fe HTTP/1.1\r\nHost: x\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
  ),
  fc.string({ unit: "binary", maxLength: 200 }).map((text) => `${text}\r\n\r\n`),
);

const operations = (Object.entries(routes) as [OperationId, Route][]).map(([id, route]) => {
  const query = route.query === undefined ? fc.constant({}) : validValues(schemaOf(route.query));
  const body = route.body?.kind === "json" ? validValues(schemaOf(route.body.schema)) : fc.constant(undefined);
  return inputsOf(id, route, { query, body });
});

/** Requests that follow the API's schemas, except in some places. */
const restInputs: fc.Arbitrary<RestInput> = fc.oneof(...operations);

function inputsOf(
  operation: OperationId,
  route: Route,
  valid: { query: fc.Arbitrary<unknown>; body: fc.Arbitrary<unknown> },
) {
  const usually = <T>(normal: T, others: readonly T[], weight = 12) =>
    fc.oneof({ weight, arbitrary: fc.constant(normal) }, { weight: 1, arbitrary: fc.constantFrom(...others) });
  const bytesBody = fc.string({ unit: "binary", maxLength: 2000 });
  const text =
    route.body?.kind === "json"
      ? fc.oneof({ weight: 1, arbitrary: valid.body }, { weight: 4, arbitrary: mutated(valid.body) }).map(jsonText)
      : fc.oneof(
          { weight: 4, arbitrary: route.body === undefined ? fc.constant("") : bytesBody },
          { weight: 1, arbitrary: bytesBody },
        );
  return fc
    .record({
      operation: fc.constant(operation),
      method: usually<string>(
        route.method,
        ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "PROPFIND"],
        20,
      ),
      segments: fc.array(usually<string | undefined>(undefined, hostileSegments, 20), { minLength: 3, maxLength: 3 }),
      query: fc.oneof(
        { weight: route.query === undefined ? 20 : 2, arbitrary: valid.query },
        { weight: 1, arbitrary: mutated(valid.query) },
      ),
      authorization: usually(KEY, authorizations, 25),
      more: fc.oneof(
        { weight: 12, arbitrary: fc.constant<string[]>([]) },
        { weight: 2, arbitrary: fc.array(fc.constantFrom(...hostileHeaders), { maxLength: 2 }) },
      ),
      text,
      damage: damages,
      framing: usually<RestInput["framing"]>(
        "length",
        ["chunked", "chunked", "cut", "too_short", "bad_length", "bad_chunk", "both"],
        10,
      ),
      garbage: fc.oneof({ weight: 60, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: garbage }),
    })
    .map(({ segments, query, authorization, more, text, damage, ...rest }): RestInput => {
      const type =
        route.body?.kind === "json" && !more.some((line) => line.startsWith("Content-Type"))
          ? ["Content-Type: application/json"]
          : [];
      return {
        ...rest,
        target: targetOf(route.path, segments, query),
        headers: [authorization, ...type, ...more].filter((line) => line !== ""),
        body: operation === "drainNode" ? Buffer.from("[]") : damaged(text, damage),
      };
    });
}

const names: Readonly<Record<string, string>> = { id: placeholders.sandbox, process: placeholders.process };

function targetOf(path: string, segments: readonly (string | undefined)[], query: unknown): string {
  let at = 0;
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => segments[at++] ?? names[name] ?? "a");
  const extra = at < segments.length && segments[2] !== undefined ? `/${segments[2]}` : "";
  return `${filled}${extra}${queryText(query)}`;
}

function queryText(query: unknown): string {
  const pairs = Object.entries(typeof query === "object" && query !== null ? query : { query });
  const texts = pairs.map(
    ([name, value]) => `${encode(name)}=${encode(typeof value === "string" ? value : jsonText(value))}`,
  );
  return texts.length === 0 ? "" : `?${texts.join("&")}`.slice(0, 12_000);
}

/** Leaves lone surrogates to the server, as bytes that are not UTF-8. */
function encode(text: string): string {
  try {
    return text === placeholders.sandbox ? text : encodeURIComponent(text);
  } catch {
    return "%ED%A0%80";
  }
}

function wireBytes(
  { method, target, headers, body, framing, garbage }: RestInput,
  fill: (text: string) => string,
): Buffer {
  if (garbage !== undefined) return Buffer.from(garbage, "latin1");
  const filled = Buffer.from(fill(body.toString("latin1")), "latin1");
  const length =
    { too_short: filled.length >> 1, cut: filled.length + 1000, bad_length: "1e3" }[framing as string] ?? filled.length;
  const isChunked = framing === "chunked" || framing === "bad_chunk" || framing === "both";
  const lines = [
    ...(isChunked ? ["Transfer-Encoding: chunked"] : []),
    ...(!isChunked || framing === "both" ? [`Content-Length: ${length}`] : []),
  ];
  const host = headers.some((line) => line.startsWith("Host")) ? [] : ["Host: localhost"];
  const head = [
    `${method} ${fill(target)} HTTP/1.1`,
    ...host,
    ...headers.map(fill),
    ...(filled.length === 0 && !isChunked ? [] : lines),
  ];
  return Buffer.concat([
    Buffer.from(`${head.join("\r\n")}\r\n\r\n`, "latin1"),
    isChunked ? chunked(filled, framing) : filled,
  ]);
}

function chunked(body: Buffer, framing: RestInput["framing"]): Buffer {
  const half = body.length >> 1;
  const chunks = [body.subarray(0, half), body.subarray(half)].filter(({ length }) => length > 0);
  const size = (chunk: Buffer) => (framing === "bad_chunk" ? "zz" : chunk.length.toString(16));
  return Buffer.concat([
    ...chunks.flatMap((chunk) => [Buffer.from(`${size(chunk)}\r\n`), chunk, Buffer.from("\r\n")]),
    Buffer.from("0\r\n\r\n"),
  ]);
}

/** Sends requests over connections of their own. */
export function restTarget(bed: Bed): FuzzTarget<RestInput> {
  const { node } = bed;
  const fill = (text: string) => bed.fill(text).replaceAll("@key@", node.apiKey);
  return {
    inputs: restInputs,
    async send(input) {
      await bed.ready();
      const isCut = input.framing === "cut" || input.garbage !== undefined;
      const answer = await sendRaw(node.port, wireBytes(input, fill), { isCut, method: input.method });
      if (answer === "closed") {
        if (!isCut) throw new Error("closed without an answer");
        return "closed";
      }
      if (answer.status < 300 && input.method !== "GET") bed.suspect();
      checkAnswer(answer, input);
      node.requireSound();
      return String(answer.status);
    },
    holdings: () => node.holdings(),
    async useOrdinarily() {
      await bed.useOrdinarily();
      bed.suspect();
      await bed.ready();
    },
  };
}

function checkAnswer({ status, headers, body }: RawAnswer, { operation, method }: RestInput): void {
  if (status < 300) {
    const { answer } = routes[operation as OperationId] as Route;
    const isJson =
      headers.get("content-type") === "application/json" &&
      answer?.kind === "json" &&
      method === routes[operation as OperationId].method;
    if (isJson) answer.schema.parse(JSON.parse(body.toString()));
    return;
  }
  if (method === "HEAD") {
    if (status >= 500) throw new Error(`HEAD was answered with ${status}`);
    return;
  }
  checkErrorBody(status, body.toString());
}

/** Every refusal is one that docs/errors.md describes, and none is a fault of the node. */
export function checkErrorBody(status: number, text: string): void {
  const problem = (what: string) => new Error(`${what}: ${status} ${text.slice(0, 2000)}`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw problem("the answer is not JSON");
  }
  const { data: error } = errorBodySchema.safeParse(value);
  if (error === undefined) throw problem("the answer is not an error body");
  if (!Object.hasOwn(errorReasons, error.reason)) throw problem("the reason is unknown");
  if (error.code === "internal" || error.code === "data_loss") throw problem("the node failed");
  if (status >= 500 && status !== errorCodes[error.code].httpStatus) throw problem("the status is undocumented");
  if (/\bat .*:\d+:\d+|node_modules|\.ts:/.test(error.message)) throw problem("the message has a stack trace");
}
