// Tools and hooks that a model or a user wrote.
export {
  type ExtensionInfo,
  ExtensionManager,
  type ExtensionManagerOptions,
  type LoadExtensionOptions,
} from "../toolbox/extension/manager.ts";
export type { ExtensionPreview } from "../toolbox/extension/preview.ts";
export {
  createExtensionTools,
  type ExtensionTools,
  type ExtensionToolsOptions,
} from "../toolbox/extension/extension-tools.ts";
export type { ExtensionBridge } from "../toolbox/extension/host-functions.ts";
export type {
  ExtensionContext,
  ExtensionHook,
  ExtensionManifest,
  ExtensionPermissions,
} from "../toolbox/extension/manifest.ts";
export type { ExtensionTurnConfig } from "../toolbox/extension/turn-config.ts";
