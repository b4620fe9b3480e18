import { SandboxError } from "@sandpiper/core";
import type { Receiver } from "./receiver.ts";
import { isWarning, type ShippedRecord } from "./shipped-record.ts";

/** All other errors mean that the same request would fail again. */
const retryable: ReadonlySet<number> = new Set([429, 502, 503, 504]);
const severities = {
  info: { severityNumber: 9, severityText: "INFO" },
  warn: { severityNumber: 13, severityText: "WARN" },
};

export interface OtlpReceiverOptions {
  /** The base URL of a collector; `/v1/logs` is appended. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly node: string;
  readonly version: string;
}

interface PartialAnswer {
  readonly partialSuccess?: { readonly rejectedLogRecords?: number | string };
}

/** Sends OpenTelemetry log records as JSON over HTTP. */
export class OtlpReceiver implements Receiver {
  readonly name = "otlp";
  readonly #options: OtlpReceiverOptions;

  constructor(options: OtlpReceiverOptions) {
    this.#options = options;
  }

  async send(records: readonly ShippedRecord[], signal: AbortSignal): Promise<number> {
    const { url, headers } = this.#options;
    const response = await fetch(`${url.replace(/\/$/, "")}/v1/logs`, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify(this.#request(records)),
      redirect: "error",
      signal,
    });
    const answer = (await response.json().catch(() => undefined)) as PartialAnswer | undefined;
    if (response.ok) return Number(answer?.partialSuccess?.rejectedLogRecords ?? 0);
    if (retryable.has(response.status)) throw refused(url, response.status);
    return records.length;
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  #request(records: readonly ShippedRecord[]) {
    const { node, version } = this.#options;
    const resource = { "service.name": "sandpiper", "service.instance.id": node, "service.version": version };
    const scope = { name: "sandpiper", version };
    return {
      resourceLogs: [
        {
          resource: { attributes: attributesOf(resource) },
          scopeLogs: [{ scope, logRecords: records.map(logRecord) }],
        },
      ],
    };
  }
}

function logRecord(record: ShippedRecord) {
  // As text, because JSON numbers have no 64 bits.
  const timeUnixNano = `${Date.parse(record.at)}000000`;
  return {
    timeUnixNano,
    observedTimeUnixNano: timeUnixNano,
    ...severities[isWarning(record) ? "warn" : "info"],
    eventName: `sandpiper.${record.type}`,
    body: { stringValue: titleOf(record) },
    attributes: attributesOf({ ...record }, "sandpiper."),
  };
}

function titleOf(record: ShippedRecord): string {
  if (record.type === "audit") return record.operation;
  return record.type === "network" ? `${record.kind} ${record.decision}` : record.kind;
}

function attributesOf(fields: Readonly<Record<string, unknown>>, prefix = "") {
  return Object.entries(fields)
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => ({ key: `${prefix}${name}`, value: anyValue(value) }));
}

function anyValue(value: unknown) {
  if (typeof value === "boolean") return { boolValue: value };
  if (Number.isSafeInteger(value)) return { intValue: String(value) };
  return { stringValue: typeof value === "string" ? value : JSON.stringify(value) };
}

function refused(url: string, status: number): SandboxError {
  return new SandboxError("ship_failed", {
    message: `the OpenTelemetry collector at ${url} answered with status ${status}`,
    hint: "check ship.otlp and the collector's log; the node retries",
  });
}
