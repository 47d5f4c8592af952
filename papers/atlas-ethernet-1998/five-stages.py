"""Prints the experiment of 1024 nodes on five stages of full STC104, whose 2176 cables are too many for a file.

python3 papers/atlas-ethernet-1998/five-stages.py > five.toml && evb simulate five.toml
"""

layers = {"leaf": 64, "middle": 64, "centre": 32}
# 16 nodes on each leaf; 16 leaves and 16 middles in each of four groups; eight cables from each middle to each of two centres.
cables = [(f"leaf{node // 16}", f"h{node}", 1) for node in range(1024)]
cables += [(f"leaf{leaf}", f"middle{leaf // 16 * 16 + middle}", 1) for leaf in range(64) for middle in range(16)]
cables += [(f"middle{middle}", f"centre{middle % 16 * 2 + centre}", 8) for middle in range(64) for centre in range(2)]

print('network.preset = "ds-link-clos"')
print("network.placement = { readout = 0, builder = 0 }")
print('workload.type = "random"')
print('trigger.duration = "2 ms"')
print('run.warmup = "800 us"')
print('readout = { units = 1024, source = { type = "fixed", size = "64 B" } }')
print("builder.units = 1024")
print("[network.topology]")
print('type = "explicit"')
names = ", ".join(f'"{layer}{number}"' for layer, count in layers.items() for number in range(count))
print(f"switches = [{names}]")
for one, other, count in cables:
    print(f'[[network.topology.link]]\nends = ["{one}", "{other}"]\ncount = {count}')
