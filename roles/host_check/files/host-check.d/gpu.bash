# shellcheck shell=bash
# GPUs and accelerators: where they are on PCIe, whether a NIC can reach their memory, and their errors. All but what
# nvidia-smi alone knows is read from sysfs, so that a host without GPUs costs nothing.

# gpu_functions: sets GPUS, the functions of NVIDIA's and AMD's display controllers (class 03) and accelerators (class 12)
# that a driver for computing holds
gpu_functions() {
  local dir class driver
  GPUS=()
  for dir in /sys/bus/pci/devices/*; do
    line "$dir/class" || continue
    class=$LINE
    line "$dir/vendor" || continue
    case $LINE$class in 0x10de0x03* | 0x10020x03* | 0x10de0x12* | 0x10020x12*) ;; *) continue ;; esac
    driver=$(readlink "$dir/driver") || continue
    case ${driver##*/} in nvidia | amdgpu) GPUS+=("${dir##*/}") ;; esac
  done
}

gather_gpu() {
  local gpu dir group function
  local -a GPUS functions
  gpu_functions
  [ ${#GPUS[@]} -gt 0 ] || return 0
  keep /proc/driver/nvidia/{version,params}
  for gpu in "${GPUS[@]}"; do
    dir=/sys/bus/pci/devices/$gpu
    mapfile -t functions < <(nic_functions "$dir")
    for function in "${functions[@]}"; do nic_pci "$function"; done
    keep "$dir"/{class,resource} "$dir"/ras/*_err_count
    keep_link "$dir/iommu_group"
    group=$(readlink "$dir/iommu_group") && keep "/sys/kernel/iommu_groups/${group##*/}/type"
  done
  if [ -e /proc/driver/nvidia/version ]; then
    ask nvidia-smi nvidia-smi --format=csv,noheader,nounits \
      --query-gpu=pci.bus_id,name,memory.total,ecc.mode.current,ecc.errors.uncorrected.volatile.total
  fi
}
