import type { ContainerOptions } from "../containers.ts";
import type { SandboxConfig, SandboxConfigOptions } from "./sandbox-config.ts";

/** Collects options one by one; `build` checks them all. */
export class SandboxConfigBuilder {
  #options: SandboxConfigOptions = {};
  readonly #parse: (options: SandboxConfigOptions) => SandboxConfig;

  constructor(parse: (options: SandboxConfigOptions) => SandboxConfig) {
    this.#parse = parse;
  }

  language(language: string): this {
    return this.#with({ language });
  }

  rootfs(rootfs: string): this {
    return this.#with({ rootfs });
  }

  kernel(kernel: string): this {
    return this.#with({ kernel });
  }

  chroot(chroot: string): this {
    return this.#with({ chroot });
  }

  memoryMib(memoryMib: number): this {
    return this.#with({ memoryMib });
  }

  vcpuCount(vcpuCount: number): this {
    return this.#with({ vcpuCount });
  }

  diskMib(diskMib: number): this {
    return this.#with({ diskMib });
  }

  maxProcesses(maxProcesses: number): this {
    return this.#with({ maxProcesses });
  }

  timeoutMs(timeoutMs: number): this {
    return this.#with({ timeoutMs });
  }

  vsockCid(vsockCid: number): this {
    return this.#with({ vsockCid });
  }

  env(env: Readonly<Record<string, string>>): this {
    return this.#with({ env: { ...this.#options.env, ...env } });
  }

  user(user: string): this {
    return this.#with({ user });
  }

  cwd(cwd: string): this {
    return this.#with({ cwd });
  }

  name(name: string): this {
    return this.#with({ name });
  }

  container(container: ContainerOptions): this {
    return this.#with({ container: { ...this.#options.container, ...container } });
  }

  labels(labels: Readonly<Record<string, string>>): this {
    return this.#with({ labels: { ...this.#options.labels, ...labels } });
  }

  build(): SandboxConfig {
    return this.#parse(this.#options);
  }

  #with(options: SandboxConfigOptions): this {
    this.#options = { ...this.#options, ...options };
    return this;
  }
}
