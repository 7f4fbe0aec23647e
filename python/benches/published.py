"""Figures of Malinin, Prokhorenkova, Ustimenko, "Uncertainty in Gradient Boosting via Ensembles", ICLR 2021.

Ensembles of ten models by stochastic gradient Langevin boosting: table 4 (negative log-likelihood) and table 1 (AUROC,
in percent, of knowledge uncertainty between test rows and out-of-domain rows).
"""

NLL = {
    "boston": 2.50,
    "concrete": 3.05,
    "energy": 1.52,
    "kin8nm": -0.65,
    "naval": -5.65,
    "power": 2.66,
    "protein": 2.64,
    "wine": 0.98,
    "yacht": 0.32,
    "adult": 0.271,
    "amazon": 0.142,
    "internet": 0.217,
    "kick": 0.285,
}

AUROC = {
    "boston": 80,
    "concrete": 92,
    "energy": 100,
    "kin8nm": 45,
    "naval": 100,
    "power": 73,
    "protein": 99,
    "wine": 72,
    "yacht": 60,
    "adult": 89,
    "amazon": 74,
    "internet": 89,
    "kick": 98,
}
