import type { ContainerEvent } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { containerState } from "../container/container-state.ts";
import { inspectContainer } from "../container/inspect-container.ts";
import { listContainers } from "../container/list-containers.ts";
import type { DockerHost } from "../host.ts";
import type { EngineEvent } from "./engine-event.ts";
import type { PresentContainers } from "./engine-events.ts";
import { WatchInbox, type WatchItem } from "./watch-inbox.ts";

/** First what is there, then what happens; an engine that was away begins again with what is there then. */
export async function* watchContainers(host: DockerHost, signal: AbortSignal): AsyncGenerator<ContainerEvent> {
  const told = new Map<SandboxId, ContainerEvent["kind"]>();
  const inbox = new WatchInbox(signal);
  const unsubscribe = host.events.subscribe(inbox, { wantsPresent: true });
  try {
    for (let item = await inbox.next(); item !== undefined; item = await inbox.next()) {
      for await (const event of eventsOf(host, item, told)) {
        if (signal.aborted) return;
        // What was told as being there already may come again as an event.
        if (told.get(event.id) === event.kind && !event.isReplay) continue;
        if (event.kind === "removed") told.delete(event.id);
        else told.set(event.id, event.kind);
        yield event;
      }
    }
  } finally {
    unsubscribe();
  }
}

async function* eventsOf(
  host: DockerHost,
  item: WatchItem,
  told: ReadonlyMap<SandboxId, unknown>,
): AsyncGenerator<ContainerEvent> {
  if ("action" in item) {
    yield await happened(host, item);
    return;
  }
  try {
    const present = "present" in item ? item.present : await listContainers(host.engine, host.home);
    yield* replay(host, present, [...told.keys()]);
  } catch {
    // The engine went away again, and what is there is told when it is back.
  }
}

/** What is there, and what was when it was told of last and is not any more. */
async function* replay(
  host: DockerHost,
  present: PresentContainers,
  told: readonly SandboxId[],
): AsyncGenerator<ContainerEvent> {
  for (const id of told) if (!present.has(id)) yield removed(id, new Date(), true);
  for (const { id, isRunning, createdAt: at } of present.values()) {
    if (isRunning) yield { id, kind: "running", isReplay: true, at, exit: undefined };
    else yield await look(host, id, true);
  }
}

async function happened(host: DockerHost, { id, action, exitCode, at }: EngineEvent): Promise<ContainerEvent> {
  if (action === "create") return { id, kind: "created", isReplay: false, at, exit: undefined };
  if (action === "start") return { id, kind: "running", isReplay: false, at, exit: undefined };
  if (action === "destroy") return removed(id, at, false);
  const event = await look(host, id, false).catch(() => undefined);
  if (event?.exit !== undefined) return { ...event, at };
  // It was removed or started again already, which is told of next.
  const exit = exitCode === undefined ? undefined : { exitCode, isOutOfMemory: false };
  return { id, kind: exitCode === 0 ? "stopped" : "failed", isReplay: false, at, exit };
}

async function look(host: DockerHost, id: SandboxId, isReplay: boolean): Promise<ContainerEvent> {
  const found = await inspectContainer(host, id);
  if (found === undefined) return removed(id, new Date(), isReplay);
  const { state, exit, at } = containerState(host, id, found);
  return { id, kind: state, isReplay, at, exit };
}

function removed(id: SandboxId, at: Date, isReplay: boolean): ContainerEvent {
  return { id, kind: "removed", isReplay, at, exit: undefined };
}
