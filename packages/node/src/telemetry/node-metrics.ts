import type { PoolResource } from "@sandpiper/protocol";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { FlowWrite } from "../flows/flow-table.ts";
import { FlowMetrics } from "./flow-metrics.ts";
import { registerPoolMetrics } from "./pool-metrics.ts";
import { type QuotaSources, registerQuotaMetrics } from "./quota-metrics.ts";

export interface SandboxCount {
  readonly provider: string;
  readonly state: string;
  readonly count: number;
}

/** Read at each scrape. */
export interface MetricSources {
  readonly sandboxes: () => readonly SandboxCount[];
  readonly pools: () => readonly PoolResource[];
  readonly mcpSessions: () => number;
  readonly quotas: QuotaSources;
}

export interface RequestObservation {
  /** The operation's id in the OpenAPI document; a path would make one time series per sandbox. */
  readonly operation: string;
  readonly status: number;
  readonly seconds: number;
}

/** From a call to an agent to a boot on a slow machine. */
const QUICK_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** Few, because there is a time series for each operation and status. */
const REQUEST_SECONDS = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60];

/** The metrics of one node, in its own registry. */
export class NodeMetrics {
  readonly #registry = new Registry();
  readonly #create: Histogram<"provider" | "start">;
  readonly #exec: Histogram<"provider">;
  readonly #checkpoint: Histogram<"provider">;
  readonly #request: Histogram<"operation" | "status">;
  readonly #webhooks: Counter<"outcome">;
  readonly #shipped: Counter<"receiver" | "outcome">;
  readonly #refusals: Counter<"limit">;
  readonly #flows: FlowMetrics;
  #sources: MetricSources = {
    sandboxes: () => [],
    pools: () => [],
    mcpSessions: () => 0,
    quotas: { tenants: () => new Map(), host: () => [] },
  };

  constructor() {
    const registers = [this.#registry];
    const histogram = <Label extends string>(
      name: string,
      help: string,
      labelNames: Label[],
      buckets = QUICK_SECONDS,
    ) => new Histogram({ registers, name: `sandpiper_${name}_duration_seconds`, help, labelNames, buckets });
    this.#create = histogram("create", "Time from the request for a sandbox until it is ready or has failed.", [
      "provider",
      "start",
    ]);
    this.#exec = histogram("exec", "Time from the request for a command until its end.", ["provider"]);
    this.#checkpoint = histogram("checkpoint", "Time to save a sandbox.", ["provider"]);
    this.#request = histogram(
      "http_request",
      "Time from a request's headers until the end of its answer.",
      ["operation", "status"],
      REQUEST_SECONDS,
    );
    this.#webhooks = new Counter({
      registers,
      name: "sandpiper_webhook_deliveries_total",
      help: "Attempts to deliver an event to a webhook.",
      labelNames: ["outcome"],
    });
    this.#shipped = new Counter({
      registers,
      name: "sandpiper_shipped_records_total",
      help: "Audit entries, events and network records for receivers outside the node.",
      labelNames: ["receiver", "outcome"],
    });
    this.#refusals = new Counter({
      registers,
      name: "sandpiper_refusals_total",
      help: "Requests and connections that a limit of callers refused.",
      labelNames: ["limit"],
    });
    this.#flows = new FlowMetrics(this.#registry);
    const read = () => this.#sources;
    new Gauge({
      registers,
      name: "sandpiper_sandboxes",
      help: "Number of sandboxes.",
      labelNames: ["provider", "state"],
      collect() {
        this.reset();
        for (const { provider, state, count } of read().sandboxes()) this.set({ provider, state }, count);
      },
    });
    new Gauge({
      registers,
      name: "sandpiper_mcp_sessions",
      help: "Number of open MCP sessions.",
      collect() {
        this.set(read().mcpSessions());
      },
    });
    registerPoolMetrics(this.#registry, () => read().pools());
    registerQuotaMetrics(this.#registry, () => read().quotas);
    collectDefaultMetrics({ register: this.#registry });
  }

  /** Sets what the gauges read. */
  collectFrom(sources: MetricSources): void {
    this.#sources = sources;
  }

  observeCreate(provider: string, seconds: number, isWarm: boolean): void {
    this.#create.observe({ provider, start: isWarm ? "warm" : "cold" }, seconds);
  }

  observeExec(provider: string, seconds: number): void {
    this.#exec.observe({ provider }, seconds);
  }

  observeCheckpoint(provider: string, seconds: number): void {
    this.#checkpoint.observe({ provider }, seconds);
  }

  observeRequest({ operation, status, seconds }: RequestObservation): void {
    this.#request.observe({ operation, status }, seconds);
  }

  countWebhookDelivery(outcome: "delivered" | "failed" | "given_up"): void {
    this.#webhooks.inc({ outcome });
  }

  countShipped(receiver: string, outcome: "sent" | "dropped", records: number): void {
    this.#shipped.inc({ receiver, outcome }, records);
  }

  countRefusal(limit: string): void {
    this.#refusals.inc({ limit });
  }

  countFlows(entries: readonly FlowWrite[]): void {
    for (const entry of entries) this.#flows.count(entry);
  }

  async render(): Promise<{ contentType: string; text: string }> {
    return { contentType: this.#registry.contentType, text: await this.#registry.metrics() };
  }
}
