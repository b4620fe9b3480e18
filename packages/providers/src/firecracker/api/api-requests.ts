/** The bodies of Firecracker's API that the provider uses, with their published names. */

export interface MachineConfiguration {
  readonly vcpu_count: number;
  readonly mem_size_mib: number;
}

export interface BootSource {
  readonly kernel_image_path: string;
  readonly initrd_path: string;
  readonly boot_args: string;
}

export interface Drive {
  readonly drive_id: string;
  readonly path_on_host: string;
  readonly is_root_device: boolean;
  readonly is_read_only: boolean;
}

export interface Vsock {
  readonly guest_cid: number;
  readonly uds_path: string;
}

interface Action {
  readonly action_type: "InstanceStart";
}

interface VmState {
  readonly state: "Paused" | "Resumed";
}

export interface SnapshotCreate {
  readonly snapshot_type: "Full";
  readonly snapshot_path: string;
  readonly mem_file_path: string;
}

interface SnapshotLoad {
  readonly snapshot_path: string;
  /** A file is mapped privately and copied on write. */
  readonly mem_backend: { readonly backend_type: "File"; readonly backend_path: string };
  readonly resume_vm: boolean;
}

/** The requests and their bodies; none of them has an answer. */
export interface ApiRequests {
  readonly "PUT /machine-config": MachineConfiguration;
  readonly "PUT /boot-source": BootSource;
  readonly "PUT /drives/base": Drive;
  readonly "PUT /drives/disk": Drive;
  readonly "PUT /vsock": Vsock;
  readonly "PUT /entropy": Readonly<Record<string, never>>;
  readonly "PUT /actions": Action;
  readonly "PATCH /vm": VmState;
  readonly "PUT /snapshot/create": SnapshotCreate;
  readonly "PUT /snapshot/load": SnapshotLoad;
}

export interface InstanceInfo {
  readonly id: string;
  readonly state: "Not started" | "Running" | "Paused";
  readonly vmm_version: string;
  readonly app_name: string;
}
