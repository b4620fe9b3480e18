import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { root } from "./dockerfile.ts";

interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: {
    readonly fieldRef?: { readonly fieldPath: string };
    readonly secretKeyRef?: { readonly name: string };
  };
}

/** A container of a Kubernetes manifest; Cloud Run's services have the same form. */
export interface ContainerManifest {
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly env: readonly Variable[];
  readonly envFrom?: readonly { readonly secretRef: { readonly name: string } }[];
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
  readonly securityContext?: { readonly privileged: boolean };
  readonly readinessProbe?: { readonly httpGet: { readonly path: string } };
  readonly startupProbe?: { readonly httpGet: { readonly path: string } };
  readonly lifecycle?: { readonly preStop: { readonly exec: { readonly command: readonly string[] } } };
}

interface Workload {
  readonly kind: string;
  readonly spec: {
    readonly replicas?: number;
    readonly serviceName?: string;
    readonly template: { readonly spec: { readonly containers: readonly [ContainerManifest] } };
  };
}

export function readWorkload(path: string, kind: string): Workload["spec"] & { readonly container: ContainerManifest } {
  const documents = parseAllDocuments(readFileSync(join(root, path), "utf8")).map((each) => each.toJS() as Workload);
  const found = documents.find((each) => each.kind === kind);
  if (found === undefined) throw new Error(`${path} has no ${kind}`);
  return { ...found.spec, container: found.spec.template.spec.containers[0] };
}

export interface EnvironmentSources {
  /** Values of `fieldRef`, by path. */
  readonly fields?: Readonly<Record<string, string>>;
  /** Variables of a secret, by the secret's name. */
  readonly secrets: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** The environment that Kubernetes gives the container. `$(NAME)` refers to an earlier variable. */
export function environmentOf(container: ContainerManifest, sources: EnvironmentSources): Record<string, string> {
  const secretOf = (name: string) => {
    const secret = sources.secrets[name];
    if (secret === undefined) throw new Error(`the manifest needs a secret ${name}`);
    return secret;
  };
  const env: Record<string, string> = {};
  for (const { secretRef } of container.envFrom ?? []) Object.assign(env, secretOf(secretRef.name));
  for (const { name, value, valueFrom } of container.env) {
    const { fieldRef, secretKeyRef } = valueFrom ?? {};
    const given =
      value ??
      (fieldRef && sources.fields?.[fieldRef.fieldPath]) ??
      (secretKeyRef && secretOf(secretKeyRef.name)[name]);
    if (given === undefined) throw new Error(`the manifest gives ${name} no value that the test knows`);
    env[name] = given.replace(/\$\(([A-Z_]+)\)/g, (whole, other: string) => env[other] ?? whole);
  }
  return env;
}
