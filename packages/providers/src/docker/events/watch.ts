import type { ContainerEvent } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { InstanceStore } from "../../host/instance-store.ts";
import { containerState } from "../container/container-state.ts";
import { inspectContainer } from "../container/inspect-container.ts";
import { listContainers } from "../container/list-containers.ts";
import type { Engine } from "../engine/engine.ts";
import type { EngineEvent } from "./engine-event.ts";
import type { EngineEvents, PresentContainers } from "./engine-events.ts";
import { WatchInbox, type WatchItem } from "./watch-inbox.ts";

export interface WatchedHost {
  readonly engine: Engine;
  readonly home: string;
  readonly store: InstanceStore;
  readonly events: EngineEvents;
}

/** Replays the current containers, then reports changes; replays again after each interruption of the engine. */
export async function* watchContainers(host: WatchedHost, signal: AbortSignal): AsyncGenerator<ContainerEvent> {
  const reported = new Map<SandboxId, ContainerEvent["kind"]>();
  const inbox = new WatchInbox(signal);
  const unsubscribe = host.events.subscribe(inbox, { wantsPresent: true });
  try {
    for (let item = await inbox.next(); item !== undefined; item = await inbox.next()) {
      for await (const event of eventsOf(host, item, reported)) {
        if (signal.aborted) return;
        // An event may repeat what the replay already reported.
        if (reported.get(event.id) === event.kind && !event.isReplay) continue;
        if (event.kind === "removed") reported.delete(event.id);
        else reported.set(event.id, event.kind);
        yield event;
      }
    }
  } finally {
    unsubscribe();
  }
}

async function* eventsOf(
  host: WatchedHost,
  item: WatchItem,
  reported: ReadonlyMap<SandboxId, unknown>,
): AsyncGenerator<ContainerEvent> {
  if ("action" in item) {
    yield await happened(host, item);
    return;
  }
  try {
    const present = "present" in item ? item.present : await listContainers(host.engine, host.home);
    yield* replay(host, present, [...reported.keys()]);
  } catch {
    // The engine is down again; the next replay follows when it is back.
  }
}

/** The current containers, and the removal of reported containers that no longer exist. */
async function* replay(
  host: WatchedHost,
  present: PresentContainers,
  reported: readonly SandboxId[],
): AsyncGenerator<ContainerEvent> {
  for (const id of reported) if (!present.has(id)) yield removed(id, new Date(), true);
  for (const { id, isRunning, createdAt: at } of present.values()) {
    if (isRunning) yield { id, kind: "running", isReplay: true, at, exit: undefined };
    else yield await inspect(host, id, true);
  }
}

async function happened(host: WatchedHost, { id, action, exitCode, at }: EngineEvent): Promise<ContainerEvent> {
  if (action === "create") return { id, kind: "created", isReplay: false, at, exit: undefined };
  if (action === "start") return { id, kind: "running", isReplay: false, at, exit: undefined };
  if (action === "destroy") return removed(id, at, false);
  const event = await inspect(host, id, false).catch(() => undefined);
  if (event?.exit !== undefined) return { ...event, at };
  // The container was already removed or restarted; that event follows.
  const exit = exitCode === undefined ? undefined : { exitCode, isOutOfMemory: false };
  return { id, kind: exitCode === 0 ? "stopped" : "failed", isReplay: false, at, exit };
}

async function inspect(host: WatchedHost, id: SandboxId, isReplay: boolean): Promise<ContainerEvent> {
  const found = await inspectContainer(host, id);
  if (found === undefined) return removed(id, new Date(), isReplay);
  const { state, exit, at } = containerState(host.store, id, found);
  return { id, kind: state, isReplay, at, exit };
}

function removed(id: SandboxId, at: Date, isReplay: boolean): ContainerEvent {
  return { id, kind: "removed", isReplay, at, exit: undefined };
}
