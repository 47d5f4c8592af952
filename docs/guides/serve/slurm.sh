#!/bin/sh
#SBATCH --ntasks=5
# A service for 2 x 2 in a job of five tasks, one for each node.
export EVB_TOKEN=$(openssl rand -hex 32) HOST=$(hostname -i)
evb serve experiments/pull-2x2.toml --listen $HOST:7000 --registry runs.db &
sleep 1
srun --ntasks=5 sh -c 'set -- evm ru0 ru1 bu0 bu1; shift $SLURM_PROCID; evb node --role $1 --join '$HOST':7000 --listen 0.0.0.0:0'
wait
