import type { Vm } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { ProjectEngine } from "./project-engine.ts";

/** The engines of the machines that run, and which sandbox is where. */
export class ProjectEngines {
  readonly #create: (vm: Vm) => ProjectEngine;
  readonly #engines = new Map<string, ProjectEngine>();
  readonly #places = new Map<SandboxId, ProjectEngine>();
  readonly #listeners = new Set<(engine: ProjectEngine) => void>();

  constructor(create: (vm: Vm) => ProjectEngine) {
    this.#create = create;
  }

  get all(): readonly ProjectEngine[] {
    return [...this.#engines.values()];
  }

  of(vm: Vm): ProjectEngine {
    const known = this.#engines.get(vm.id);
    if (known !== undefined) return known;
    const engine = this.#create(vm);
    this.#engines.set(vm.id, engine);
    engine.gone.addEventListener("abort", () => this.#forget(engine), { once: true });
    for (const listener of this.#listeners) listener(engine);
    return engine;
  }

  placeOf(id: SandboxId): ProjectEngine | undefined {
    return this.#places.get(id);
  }

  place(id: SandboxId, engine: ProjectEngine): void {
    if (!engine.gone.aborted) this.#places.set(id, engine);
  }

  unplace(id: SandboxId, engine: ProjectEngine): void {
    if (this.#places.get(id) === engine) this.#places.delete(id);
  }

  /** Told of each that comes from now on, until what this returns is called. */
  onCome(listener: (engine: ProjectEngine) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #forget(engine: ProjectEngine): void {
    this.#engines.delete(engine.vm.id);
    for (const [id, place] of this.#places) if (place === engine) this.#places.delete(id);
  }
}
