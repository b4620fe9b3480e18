import { mkdir } from "node:fs/promises";
import { unlessAborted } from "../../host/unless-aborted.ts";
import type { QemuHost } from "../host.ts";
import type { MachineShape } from "../machine/machine-shape.ts";
import { findTemplate, makeTemplate, type Template, templateKey } from "./template.ts";

/** The templates of this host. Each is made once, while all other creations that need it wait. */
export class Templates {
  readonly #making = new Map<string, Promise<void>>();

  async get(host: QemuHost, shape: MachineShape, signal: AbortSignal): Promise<Template> {
    const key = templateKey(host, shape);
    for (;;) {
      const found = await findTemplate(host, key);
      if (found !== undefined) return found;
      await unlessAborted(() => this.#make(host, key, shape), signal);
    }
  }

  /** Continues when the first caller aborts, because others may wait for the template. */
  #make(host: QemuHost, key: string, shape: MachineShape): Promise<void> {
    const known = this.#making.get(key);
    if (known !== undefined) return known;
    const making = mkdir(host.templates, { recursive: true, mode: 0o700 })
      .then(() => makeTemplate(host, key, shape))
      .finally(() => this.#making.delete(key));
    making.catch(() => {});
    this.#making.set(key, making);
    return making;
  }
}
