/* Performance states for the first processor of QEMU's q35, so that the kernel's own acpi-cpufreq driver loads and its
   governors can be switched. The control and status register is an I/O port where QEMU has nothing: the speed never
   changes. Core frequency (MHz), power (mW), latencies (us), control, status: as in _PSS of the ACPI specification. */
DefinitionBlock ("", "SSDT", 2, "PERCH", "LABCPU", 1)
{
    External (\_SB.CPUS.C000, DeviceObj)
    Scope (\_SB.CPUS.C000)
    {
        Name (_PCT, Package ()
        {
            ResourceTemplate () { Register (SystemIO, 8, 0, 0x00E9) },
            ResourceTemplate () { Register (SystemIO, 8, 0, 0x00E9) }
        })
        Name (_PSS, Package ()
        {
            Package () { 2600, 20000, 10, 10, 1, 1 },
            Package () { 1800, 12000, 10, 10, 2, 2 },
            Package () { 1200,  8000, 10, 10, 3, 3 }
        })
        Method (_PPC) { Return (0) }
    }
}
