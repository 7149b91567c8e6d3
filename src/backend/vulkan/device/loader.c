/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Finds Vulkan: loads the loader library, creates the instance of the
 * process and lists its physical devices. If a step fails, the instance
 * holds a message and a fix for `vyre devices` and `vyre doctor`. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "backend/vulkan/device/fork.h"
#include "backend/vulkan/device/functions.h"
#include "backend/vulkan/device/instance.h"
#include "base/memory.h"
#include "hal/backend.h"

vk_hooks vyre__vk_hooks;

/* --- the loader library --------------------------------------------------- */

/* Returns the name of the loader library. VYRE_VULKAN overrides it; "none"
 * disables Vulkan. */
static const char *loader_name(void) {
  const char *name = vyre__environment("VYRE_VULKAN");
  return name && name[0] ? name : "libvulkan.so.1";
}

/* Returns the text of dlerror without the leading library name, or NULL if the
 * file does not exist. */
static const char *load_error(const char *error) {
  size_t length = strlen(loader_name());
  if (!error || strstr(error, "No such file")) return NULL;
  bool has_name = strncmp(error, loader_name(), length) == 0 &&
                  strncmp(error + length, ": ", 2) == 0;
  return has_name ? error + length + 2 : error;
}

static void report_loader(vk_instance *instance, const char *reason) {
  bool is_chosen = vyre__environment("VYRE_VULKAN") != NULL;
  if (strcmp(loader_name(), "none") == 0) {
    (void)snprintf(instance->missing, sizeof instance->missing,
                   "VYRE_VULKAN=none disables Vulkan");
    (void)snprintf(instance->fix, sizeof instance->fix, "unset VYRE_VULKAN");
    return;
  }
  (void)snprintf(instance->missing, sizeof instance->missing,
                 reason ? "the Vulkan loader '%.80s' cannot be used: %.100s"
                        : "the Vulkan loader '%.80s' was not found",
                 loader_name(), reason ? reason : "");
  (void)snprintf(
      instance->fix, sizeof instance->fix, "%s%s",
      reason && is_chosen ? ""
                          : "apt-get install libvulkan1 mesa-vulkan-drivers",
      !is_chosen ? ""
      : reason   ? "unset VYRE_VULKAN or set it to the path of the loader"
               : ", and unset VYRE_VULKAN or set it to the path of the loader");
}

/* The library is never unloaded: drivers start threads and install handlers. */
static void open_loader(vk_instance *instance) {
  bool is_none = strcmp(loader_name(), "none") == 0;
  void *handle = is_none ? NULL : dlopen(loader_name(), RTLD_NOW | RTLD_LOCAL);
  const char *reason = is_none || handle ? NULL : load_error(dlerror());
  void *symbol = handle ? dlsym(handle, "vkGetInstanceProcAddr") : NULL;
  if (handle && !symbol) reason = "it has no vkGetInstanceProcAddr";
  if (!symbol) {
    report_loader(instance, reason);
    return;
  }
  memcpy(&instance->get_proc_addr, &symbol, sizeof instance->get_proc_addr);
  if (vyre__vk_hooks.wrap_loader)
    instance->get_proc_addr =
        vyre__vk_hooks.wrap_loader(instance->get_proc_addr);
}

static bool load_functions(vk_instance *instance) {
  bool is_complete = true;
#define X(name)                                                              \
  instance->api.name =                                                       \
      (PFN_vk##name)(instance->get_proc_addr(instance->handle, "vk" #name)); \
  is_complete = is_complete && instance->api.name;
  VK_INSTANCE_CALLS(X)
#undef X
  return is_complete;
}

/* Creates the debug messenger of tests. It lives as long as the instance. */
static void create_messenger(vk_instance *instance) {
  if (!vyre__vk_hooks.message) return;
  PFN_vkCreateDebugUtilsMessengerEXT create =
      (PFN_vkCreateDebugUtilsMessengerEXT)instance->get_proc_addr(
          instance->handle, "vkCreateDebugUtilsMessengerEXT");
  const VkDebugUtilsMessengerCreateInfoEXT info = {
      .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
      .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                         VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
      .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
      .pfnUserCallback = vyre__vk_hooks.message};
  VkDebugUtilsMessengerEXT messenger;
  if (create) (void)create(instance->handle, &info, NULL, &messenger);
}

static VkResult create_instance(vk_instance *instance) {
  PFN_vkCreateInstance create =
      (PFN_vkCreateInstance)instance->get_proc_addr(NULL, "vkCreateInstance");
  PFN_vkEnumerateInstanceVersion version =
      (PFN_vkEnumerateInstanceVersion)instance->get_proc_addr(
          NULL, "vkEnumerateInstanceVersion");
  uint32_t supported = VK_API_VERSION_1_0;
  if (version) (void)version(&supported);
  if (!create || supported < VK_API_VERSION_1_1) {
    return VK_ERROR_INCOMPATIBLE_DRIVER;
  }
  instance->version =
      supported < VK_API_VERSION_1_3 ? supported : VK_API_VERSION_1_3;
  static const char *const debug_utils[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};
  const VkApplicationInfo application = {
      .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
      .pEngineName = "vyre",
      .apiVersion = instance->version};
  const VkInstanceCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
      .pApplicationInfo = &application,
      .enabledLayerCount = vyre__vk_hooks.layer ? 1 : 0,
      .ppEnabledLayerNames = &vyre__vk_hooks.layer,
      .enabledExtensionCount = vyre__vk_hooks.message ? 1 : 0,
      .ppEnabledExtensionNames = debug_utils};
  return create(&info, NULL, &instance->handle);
}

/* --- physical devices ----------------------------------------------------- */

static void read_driver(const vk_instance_api *api, vk_physical_device *p) {
  VkPhysicalDeviceDriverProperties driver = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
  VkPhysicalDeviceProperties2 all = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
      .pNext = p->version >= VK_API_VERSION_1_2 ? &driver : NULL};
  api->GetPhysicalDeviceProperties2(p->handle, &all);
  p->has_llvmpipe_bugs = all.pNext
                             ? driver.driverID == VK_DRIVER_ID_MESA_LLVMPIPE
                             : p->is_software;
  uint32_t v = p->properties.driverVersion, a = p->properties.apiVersion;
  (void)snprintf(
      p->driver, sizeof p->driver, "%.60s %.120s %u.%u.%u, Vulkan %u.%u.%u",
      driver.driverName, driver.driverInfo, VK_API_VERSION_MAJOR(v),
      VK_API_VERSION_MINOR(v), VK_API_VERSION_PATCH(v), VK_API_VERSION_MAJOR(a),
      VK_API_VERSION_MINOR(a), VK_API_VERSION_PATCH(a));
}

/* Returns true if a memory type is device-local, host-visible, coherent, and
 * has the flags @p extra. */
static bool has_unified_memory(const vk_physical_device *p,
                               VkMemoryPropertyFlags extra) {
  const VkMemoryPropertyFlags required = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT |
                                         VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                         VK_MEMORY_PROPERTY_HOST_COHERENT_BIT |
                                         extra;
  for (uint32_t i = 0; i < p->memory.memoryTypeCount; i++) {
    if ((p->memory.memoryTypes[i].propertyFlags & required) == required)
      return true;
  }
  return false;
}

/* Returns false if the device supports less than Vulkan 1.1; then only its
 * properties are valid. */
static bool read_physical(const vk_instance *instance, VkPhysicalDevice handle,
                          vk_physical_device *out) {
  const vk_instance_api *api = &instance->api;
  *out = (vk_physical_device){.handle = handle};
  api->GetPhysicalDeviceProperties(handle, &out->properties);
  out->version = out->properties.apiVersion < instance->version
                     ? out->properties.apiVersion
                     : instance->version;
  if (out->version < VK_API_VERSION_1_1) return false;
  api->GetPhysicalDeviceMemoryProperties(handle, &out->memory);
  out->is_software = out->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  out->can_be_unified = has_unified_memory(out, 0);
  /* Discrete GPUs may map their memory for the host, but the host reads it
   * slowly. It also reads uncached memory slowly. */
  out->is_unified =
      has_unified_memory(out, VK_MEMORY_PROPERTY_HOST_CACHED_BIT) &&
      (out->is_software ||
       out->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU);
  read_driver(api, out);
  (void)snprintf(
      out->note, sizeof out->note, "%s",
      out->is_software
          ? "software Vulkan on the CPU, for tests; device 'cpu' is faster"
      : out->is_unified ? "integrated GPU; kernels use host memory"
                        : "GPU with its own memory");
  return true;
}

static unsigned rank(const vk_physical_device *p) {
  switch (p->properties.deviceType) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return 1;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return 2;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return 4;
    default:
      return 3;
  }
}

/* Sorts the devices by rank; devices of the same rank keep the order of the
 * loader. */
static void find_devices(vk_instance *instance) {
  VkPhysicalDevice handles[VK_MAX_PHYSICAL_DEVICES];
  uint32_t count = VK_MAX_PHYSICAL_DEVICES;
  VkResult result =
      instance->api.EnumeratePhysicalDevices(instance->handle, &count, handles);
  if (result != VK_SUCCESS && result != VK_INCOMPLETE) count = 0;
  for (uint32_t i = 0; i < count; i++) {
    vk_physical_device device;
    if (!read_physical(instance, handles[i], &device)) continue;
    uint32_t at = instance->count++;
    for (; at > 0 && rank(&instance->devices[at - 1]) > rank(&device); at--) {
      instance->devices[at] = instance->devices[at - 1];
    }
    instance->devices[at] = device;
  }
}

static const char install_driver[] =
    "apt-get install mesa-vulkan-drivers, or the driver of your GPU";

/* Address space that drivers need: their compilers have more than 100 MB of
 * code. With less, Mesa aborts the process, or the loader finds no driver. So
 * the loader is not opened if the limit of the process is lower. */
#define MIN_ADDRESS_SPACE ((rlim_t)1 << 30)

static bool has_address_space(vk_instance *instance) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0 ||
      limit.rlim_cur >= MIN_ADDRESS_SPACE) {
    return true;
  }
  (void)snprintf(instance->missing, sizeof instance->missing,
                 "Vulkan drivers need %llu bytes of address space; this "
                 "process is limited to %llu",
                 (unsigned long long)MIN_ADDRESS_SPACE,
                 (unsigned long long)limit.rlim_cur);
  (void)snprintf(instance->fix, sizeof instance->fix,
                 "start the process with a higher limit on address space "
                 "(`ulimit -v`)");
  return false;
}

/* Writes the reason why a loader that was found offers no device, and the
 * fix. */
static void report_missing(vk_instance *instance, VkResult result) {
  const char *fix = install_driver;
  const char *const variables[] = {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"};
  (void)snprintf(
      instance->missing, sizeof instance->missing,
      result == VK_SUCCESS || result == VK_ERROR_INCOMPATIBLE_DRIVER
          ? "the Vulkan loader '%.80s' found no driver with a Vulkan 1.1 device"
          : "the Vulkan loader '%.80s' could not create an instance (VkResult "
            "%d)",
      loader_name(), (int)result);
  for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
    const char *files = vyre__environment(variables[i]);
    if (!files || !files[0]) continue;
    (void)snprintf(instance->missing, sizeof instance->missing,
                   "the Vulkan loader '%.80s' found no driver with a Vulkan "
                   "1.1 device in %s='%.80s'",
                   loader_name(), variables[i], files);
    fix =
        "set the variable to the JSON file of an installed driver, or unset it";
    break;
  }
  if (result == VK_ERROR_LAYER_NOT_PRESENT && !instance->fix[0]) {
    fix =
        "apt-get install vulkan-validationlayers, or do not request the layer";
  }
  if (!instance->fix[0]) {
    (void)snprintf(instance->fix, sizeof instance->fix, "%s", fix);
  }
}

static bool has_layer(const VkLayerProperties *layers, uint32_t count,
                      const char *name, size_t length) {
  for (uint32_t i = 0; i < count; i++) {
    if (strlen(layers[i].layerName) == length &&
        memcmp(layers[i].layerName, name, length) == 0)
      return true;
  }
  return false;
}

/* Sets a fix if VK_INSTANCE_LAYERS names a layer that is not installed. Loaders
 * skip such layers silently. */
static void check_layers(vk_instance *instance) {
  enum { MAX_LAYERS = 32 };
  VkLayerProperties layers[MAX_LAYERS];
  uint32_t count = MAX_LAYERS;
  const char *wanted = vyre__environment("VK_INSTANCE_LAYERS");
  PFN_vkEnumerateInstanceLayerProperties list =
      (PFN_vkEnumerateInstanceLayerProperties)instance->get_proc_addr(
          NULL, "vkEnumerateInstanceLayerProperties");
  if (!wanted || !list) return;
  VkResult result = list(&count, layers);
  if (result != VK_SUCCESS && result != VK_INCOMPLETE) return;
  while (wanted[0]) {
    size_t length = strcspn(wanted, ":");
    if (length > 0 && !has_layer(layers, count, wanted, length)) {
      (void)snprintf(
          instance->fix, sizeof instance->fix,
          "layer '%.*s' of VK_INSTANCE_LAYERS is not installed: apt-get "
          "install vulkan-validationlayers, or unset the variable",
          (int)(length < 80 ? length : 80), wanted);
      return;
    }
    wanted += length + (wanted[length] == ':');
  }
}

static void init_instance(vk_instance *instance) {
  /* A fork in another thread may have left it half initialised. */
  *instance = (vk_instance){.parent = instance->parent};
  if (!has_address_space(instance)) return;
  open_loader(instance);
  if (!instance->get_proc_addr) return;
  check_layers(instance);
  VkResult result = create_instance(instance);
  if (result != VK_SUCCESS || !load_functions(instance)) {
    if (result == VK_SUCCESS && instance->api.DestroyInstance) {
      instance->api.DestroyInstance(instance->handle, NULL);
    }
    instance->handle = NULL;
    report_missing(instance, result);
    return;
  }
  create_messenger(instance);
  find_devices(instance);
  if (instance->count == 0) report_missing(instance, VK_SUCCESS);
}

/* --- the instance of the process ------------------------------------------ */

static vk_instance first_instance;
static const vk_instance no_memory_instance = {
    .missing = "out of memory while creating the Vulkan instance",
    .fix = "free memory of this process"};
static _Atomic(vk_instance *) current; /* NULL before the first lookup */
static vk_instance *parent; /* instance that fork() copied to this process */
static atomic_bool has_devices; /* the current instance created a VkDevice */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Returns storage for a new instance. The instance of the parent process is not
 * overwritten, because the devices copied from it point to it. */
static vk_instance *alloc_instance(void) {
  if (!parent) return &first_instance;
  vk_instance *device =
      vyre__resize((vyre_allocator){0}, NULL, 0, sizeof *device);
  if (device) *device = (vk_instance){.parent = parent};
  return device;
}

const vk_instance *vk_instance_find(void) {
  vk_instance *found = atomic_load_explicit(&current, memory_order_acquire);
  if (found) return found;
  pthread_mutex_lock(&lock);
  found = atomic_load(&current);
  if (!found) {
    found = alloc_instance();
    if (found) init_instance(found);
    atomic_store_explicit(&current, found, memory_order_release);
  }
  pthread_mutex_unlock(&lock);
  return found ? found : &no_memory_instance;
}

void vk_instance_mark_used(void) {
  vk_fork_handlers_install();
  atomic_store(&has_devices, true);
}

void vk_instance_after_fork(void) {
  pthread_mutex_init(&lock, NULL);
  if (!atomic_load(&has_devices)) return;
  parent = atomic_load(&current);
  atomic_store(&current, NULL);
  atomic_store(&has_devices, false);
}
